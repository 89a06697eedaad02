// spider-rs through its Node binding, for comparison. usage: node spider_rs.mjs URL OUT, in the folder of its node_modules
import { createRequire } from 'node:module';
import fs from 'node:fs';
const { Website } = createRequire(process.cwd() + '/')('@spider-rs/spider-rs');
const [url, out] = process.argv.slice(2);
const site = new Website(url).withRespectRobotsTxt(false).build();
await site.crawl();
fs.writeFileSync(out, site.getLinks().map((link) => link + '\n').join(''));
process.exit(0);
