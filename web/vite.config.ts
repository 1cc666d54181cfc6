// SPDX-License-Identifier: MIT
//
// Builds the page into three files with fixed names, because they are compiled into the binary and
// pasted into an export: dist/index.html, dist/app.js and dist/app.css. Nothing is inlined, so
// that the page works under a policy which forbids inline scripts and styles.
import { defineConfig } from 'vite';

export default defineConfig({
    base: './',
    build: {
        outDir: 'dist',
        emptyOutDir: true,
        target: 'es2022',
        assetsInlineLimit: 0,
        cssCodeSplit: false,
        modulePreload: false,
        chunkSizeWarningLimit: 1000,
        rollupOptions: {
            output: {
                entryFileNames: 'app.js',
                assetFileNames: 'app[extname]',
                inlineDynamicImports: true,
            },
        },
    },
});
