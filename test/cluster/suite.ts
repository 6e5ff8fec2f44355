/** What a suite on a real Redis has for itself: a server on a port of its own, and folders; at its end all of it goes, with the processes that its tests left. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { killAll } from "./processes.ts";

export interface RedisSuite {
  /** Throws where there is no Redis: such tests are skipped. */
  readonly redis: TestServer;
  /** A new one each time. */
  folder(): string;
}

/** Called once, before the tests of the file. `name` stands in the name of its folders. */
export function redisSuite(name: string, settings: readonly string[] = ["--maxmemory-policy", "noeviction"]): RedisSuite {
  const root = mkdtempSync(join(tmpdir(), `skein-${name}-`));
  let redis: TestServer | null = null;
  before(async () => {
    if (skipRedis === false) redis = await startServer(settings);
  });
  after(async () => {
    killAll();
    await redis?.stop();
    rmSync(root, { recursive: true, force: true });
  });
  return {
    get redis() {
      if (redis === null) throw new Error("there is no redis-server");
      return redis;
    },
    folder: () => mkdtempSync(join(root, "d-")),
  };
}
