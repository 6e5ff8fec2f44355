/** The dashboard's files from its sources, by esbuild: for the build and for a service run from a checkout. Nothing of it is reached in a build. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as esbuild from "esbuild";

export interface Bundle {
  /** By name: index.html, app.js, app.css. */
  readonly files: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
  /** Paths of what went in, from the root of the checkout. */
  readonly inputs: readonly string[];
}

/** `root`: of the checkout. Rejects with esbuild's errors. */
export async function bundleDashboard(root: string): Promise<Bundle> {
  const folder = join(root, "src/service/dashboard/ui");
  const { outputFiles, metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: { app: join(folder, "main.tsx") },
    outdir: join(root, "dist/dashboard"),
    write: false,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    minify: true,
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  const files = new Map<string, Uint8Array<ArrayBuffer>>([["index.html", new Uint8Array(await readFile(join(folder, "index.html")))]]);
  for (const { path, contents } of outputFiles) files.set(path.endsWith(".css") ? "app.css" : "app.js", new Uint8Array(contents));
  return { files, inputs: Object.keys(metafile.inputs) };
}
