/** A body kept in an unnamed temporary file while it is hashed: for requests with an Idempotency-Key, whose repetition must be told from a mistake before anything is done. */
import { createHash } from "node:crypto";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bytes } from "./bytes.ts";

export interface Spooled extends AsyncDisposable {
  /** Of the bytes, in hex. */
  readonly sha256: string;
  chunks(): Bytes;
}

/** Reads the body to its end. The file has no name while it is used, so that a killed process leaves nothing. */
export async function spool(body: Bytes): Promise<Spooled> {
  const folder = await mkdtemp(join(tmpdir(), "skein-upload-"));
  const file = await open(join(folder, "body"), "w+", 0o600);
  await rm(folder, { recursive: true, force: true });
  const hash = createHash("sha256");
  try {
    for await (const chunk of body) {
      hash.update(chunk);
      await file.write(chunk);
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  return {
    sha256: hash.digest("hex"),
    async *chunks() {
      const buffer = Buffer.allocUnsafe(65_536);
      for (let at = 0; ; ) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
        if (bytesRead === 0) return;
        at += bytesRead;
        yield Buffer.from(buffer.subarray(0, bytesRead));
      }
    },
    [Symbol.asyncDispose]: () => file.close(),
  };
}
