/** How fast robots.txt is read and asked: `node src/rules/robots.bench.ts`. Figures for people; no test depends on them. */
import { parseRobots, verdict } from "./robots.ts";

function time(name: string, rounds: number, run: (round: number) => void): void {
  for (let i = 0; i < rounds / 10; i++) run(i);
  const start = performance.now();
  for (let i = 0; i < rounds; i++) run(i);
  const each = ((performance.now() - start) / rounds) * 1_000;
  console.log(`${name.padEnd(52)} ${each.toFixed(3).padStart(10)} µs`);
}

const plain = Array.from({ length: 5_000 }, (_, i) => `Disallow: /some/folder/number-${i}/`).join("\n");
const starred = Array.from({ length: 5_000 }, (_, i) => `Disallow: /*/part-${i}/*.html$`).join("\n");
const usual =
  "Disallow: /search\nAllow: /search/about\nDisallow: /*?session=\nDisallow: /private/\nDisallow: /*.pdf$\nAllow: /private/open/\nDisallow: /cgi-bin/";
const urls = Array.from({ length: 1_000 }, (_, i) => `https://www.site.example/some/folder/number-${i * 7}x/page-${i}.html?view=${i}`);
const escaped = urls.map((url) => `${url}&q=%E3%83%84`);

for (const [name, rules, rounds] of [
  ["a usual file of 7 rules", usual, 20_000],
  ["5,000 prefixes", plain, 100],
  ["5,000 patterns with stars", starred, 100],
] as const) {
  const text = `User-agent: *\n${rules}\n`;
  const robots = parseRobots(text);
  time(`${name}: parse`, rounds, () => void parseRobots(text));
  time(`${name}: parse, compile and ask once`, rounds, () => void verdict(parseRobots(text), "skein", urls[0]!));
  time(`${name}: ask`, rounds * 100, (i) => void verdict(robots, "skein", urls[i % 1_000]!));
  time(`${name}: ask for a URL with escapes`, rounds * 100, (i) => void verdict(robots, "skein", escaped[i % 1_000]!));
}
const hostile = parseRobots(`User-agent: *\n${`Disallow: /${"*a".repeat(50)}*b$\n`.repeat(1_000)}`);
time("1,000 patterns of 50 stars: ask for 8,000 characters", 10, () => void verdict(hostile, "skein", `http://h.example/${"a".repeat(8_000)}`));
