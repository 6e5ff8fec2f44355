/** Where the service gets the dashboard's files: those of the build, or in a checkout made from the sources at once. Sends nothing. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface DashboardFile {
  readonly type: string;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Quoted, as in the header field. */
  readonly etag: string;
}

const TYPES = { "index.html": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8" } as const;

/** Built code lies in dist/ or dist/chunks/, beside dist/dashboard/. */
async function built(name: string, here: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await readFile(join(here, "dashboard", name)));
  } catch {
    // Not beside this chunk; if it is not above it either, that error is the one to see.
    return new Uint8Array(await readFile(join(here, "../dashboard", name)));
  }
}

/** By path, from `/`. Rejects when a file of the build is missing, or with what esbuild says of the sources. */
export async function dashboardFiles(): Promise<Map<string, DashboardFile>> {
  const here = dirname(fileURLToPath(import.meta.url));
  const fromSources = import.meta.url.endsWith(".ts");
  const bundle = fromSources ? await (await import("./bundle.ts")).bundleDashboard(join(here, "../../..")) : null;
  const found = new Map<string, DashboardFile>();
  for (const [name, type] of Object.entries(TYPES)) {
    const body = bundle?.files.get(name) ?? (await built(name, here));
    found.set(`/${name}`, { type, body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"` });
  }
  return found;
}
