// Replaces the built files by their Brotli form, which the tests serve as it is.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants } from "node:zlib";

for (const name of readdirSync("built", { recursive: true })) {
  if (!/\.(html|js|css)$/.test(name)) continue;
  const text = readFileSync(`built/${name}`);
  writeFileSync(`built/${name}.br`, brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } }));
  rmSync(`built/${name}`);
}
