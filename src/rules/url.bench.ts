/** Nanoseconds per reference resolved and per fingerprint: `node src/rules/url.bench.ts`. */
import { fingerprint } from "./url.ts";
import { createResolver } from "./url-resolve.ts";

const BASE = "https://www.example.com/docs/library/index.html";
const REFERENCES: Readonly<Record<string, readonly string[]>> = {
  relative: ["tutorial.html", "os.path.html#os.path.join", "../reference/intro.html", "asyncio-task.html"],
  rooted: ["/", "/docs/a/b.html", "/search?q=a&page=2", "/a/b/c/"],
  absolute: ["https://docs.example.org/3/", "http://other.example.net/a/b?c=d", "https://www.example.com/x/y", "//cdn.example.net/z"],
  odd: ["/café", "a b.html", "http://127.0.0.1:8080/", "../../x/../y"],
};

function measure(name: string, calls: number, work: (i: number) => void): void {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const start = process.cpuUsage().user;
    for (let i = 0; i < calls; i++) work(i);
    best = Math.min(best, process.cpuUsage().user - start);
  }
  process.stdout.write(`${name}: ${((best * 1000) / calls).toFixed(0)} ns\n`);
}

const resolver = createResolver(BASE, null);
for (const [name, references] of Object.entries(REFERENCES)) {
  measure(`resolve, ${name}`, 200_000, (i) => void resolver.resolve(references[i & 3]!));
  measure(`URL.parse, ${name}`, 200_000, (i) => void URL.parse(references[i & 3]!, BASE)?.href);
}
const out = new Int32Array(2);
const keys = Array.from({ length: 1024 }, (_, i) => `${BASE}?page=${i}`.padEnd(80, "x"));
measure("fingerprint of 80 characters", 500_000, (i) => fingerprint(keys[i & 1023]!, [1, 2, 3, 4], out));
