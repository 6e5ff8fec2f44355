/** `skein robots`: what a site's robots.txt, or one in a file, says of URLs, with the line that decided. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { CrawlError } from "../../core/errors.ts";
import type { judgeRobots, probeRobots, RobotsProbe, RobotsQuestion } from "../../inspect/probe-robots.ts";
import { admitSeed } from "../../rules/admit.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import { cliFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import { argumentFault } from "../seeds.ts";
import { JSON_FLAG, logOf, type Reading, readVerb, usageError, type Verb } from "../verb.ts";
import { delayWords, verdictWords } from "../verdict.ts";

export type LoadRobots = () => Promise<{ readonly probeRobots: typeof probeRobots; readonly judgeRobots: typeof judgeRobots }>;

export const ROBOTS: Verb = {
  name: "robots",
  head: `Usage: skein robots URL… [options]

Says whether robots.txt lets a crawler fetch each URL, by which line, and what else the file says to
that crawler. The file is fetched as a crawl would (RFC 9309): redirects are followed; a 4xx answer
means that there are no rules; when it cannot be had, nothing may be fetched.

Examples:
  skein robots https://example.com/private/
  skein robots --agent googlebot example.com/a example.com/b
  skein robots --file robots.txt https://example.com/new/   try a file before it is published
`,
  own: [
    cliFlag("agent", {
      value: "NAME",
      allowed: "the name of a crawler",
      description: "The crawler to judge for; without it, the product token of --user-agent.",
    }),
    cliFlag("file", { value: "FILE", allowed: "a file name", description: "Judge by this file; nothing is fetched." }),
    JSON_FLAG,
  ],
  shared: ["user-agent", "header", "auth", "proxy", "insecure", "timeout", "refuse-private", "allow-address", "retries", "max-wait"],
  tail: `
With --json, one object a line, in the order of the URLs.

Exit status: 0 all URLs are allowed; 8 one is disallowed; 4 a robots.txt cannot be had, so that its
URLs must not be fetched; 2 usage. So "skein robots URL >/dev/null && …" does what it looks like.
`,
};

const SEED = [0, 0, 0, 0] as const;

function questionsOf(args: readonly string[]): RobotsQuestion[] {
  if (args.length === 0) throw new CrawlError("invalid-options", "nothing to judge: give a URL");
  const problems: { option: string; message: string }[] = [];
  const questions = args.flatMap((text): RobotsQuestion[] => {
    const verdict = admitSeed(text, SEED, "try-both");
    const fault = argumentFault(text) ?? (verdict.kind === "bad" ? verdict.why : null);
    if (fault !== null) problems.push({ option: text, message: fault });
    return fault === null && verdict.kind === "seed" ? [{ url: verdict.request.url, fallback: verdict.request.rest?.fallback ?? null }] : [];
  });
  if (problems.length > 0) throw new CrawlError("invalid-options", "not every argument is a URL", { problems });
  return questions;
}

/** Lines for people. */
export function robotsLines(probe: RobotsProbe): string[] {
  const delay = delayWords(probe.crawlDelayMs);
  const asked = probe.exchanges.filter(({ status, url }, index) => probe.exchanges.length > 1 || status === null || index > 0 || url !== probe.robotsUrl);
  return [
    probe.url,
    `  ${verdictWords(probe)}`,
    `  for ${probe.agent}, in ${probe.robotsUrl}`,
    ...asked.map(({ url, status, location, error }) => `  asked ${url}: ${status ?? error?.code ?? "no answer"}${location === null ? "" : ` → ${location}`}`),
    ...(delay === null ? [] : [`  crawl delay ${delay}`]),
    ...probe.sitemaps.map((url) => `  sitemap ${url}`),
  ];
}

async function* probes(reading: Reading, io: Io, load: LoadRobots): AsyncGenerator<RobotsProbe> {
  const questions = questionsOf(reading.args);
  const agent = reading.text("agent");
  if (agent !== null && !/^[^\s/]/.test(agent.trim())) throw usageError("--agent", "expected the name of a crawler");
  const file = reading.text("file");
  const { probeRobots, judgeRobots } = await load();
  if (file === null) {
    yield* probeRobots(reading.spec, questions, agent, { log: logOf(io) });
    return;
  }
  let bytes: Uint8Array;
  try {
    bytes = await readFile(resolve(io.cwd, file));
  } catch (cause) {
    throw usageError("--file", `${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  const urls = questions.map(({ url }) => url);
  yield* judgeRobots(new TextDecoder().decode(bytes), file, urls, agent ?? reading.spec.userAgent);
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function robotsCommand(argv: readonly string[], io: Io, load: LoadRobots): Promise<number> {
  const reading = await readVerb(ROBOTS, argv, io);
  if (reading === null) return EXIT.ok;
  let status: number = EXIT.ok;
  for await (const probe of probes(reading, io, load)) {
    if (probe.basis === "unavailable") status = EXIT.noSeedReached;
    else if (!probe.allowed && status === EXIT.ok) status = EXIT.no;
    const text = reading.isOn("json") ? JSON.stringify(probe) : robotsLines(probe).map(harmless).join("\n");
    await io.stdout.write(Buffer.from(`${text}\n`));
  }
  return status;
}
