// npm sitemap-generator, for comparison. usage, in the folder that has it: node sitemap_generator.cjs URL OUT
const { createRequire } = require("node:module");
const SitemapGenerator = createRequire(process.cwd() + "/")("sitemap-generator");
const [url, out] = process.argv.slice(2);
const generator = SitemapGenerator(url, {
  stripQuerystring: false, respectRobotsTxt: false, maxDepth: 0, maxConcurrency: 16, filepath: out,
});
generator.getCrawler().interval = 1;
generator.on("done", () => process.exit(0));
generator.start();
