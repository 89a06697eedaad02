import { svelte } from "@sveltejs/vite-plugin-svelte";
import vue from "@vitejs/plugin-vue";

const name = process.env.APP;
export default {
  root: name,
  plugins: { react: [], vue: [vue()], svelte: [svelte()] }[name],
  esbuild: { legalComments: "none" },
  build: {
    outDir: "../built/" + name,
    emptyOutDir: true,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
};
