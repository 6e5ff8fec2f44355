/** Settling: links first, then the outputs are written, then the pages are acknowledged. */
import { CrawlError } from "../../core/errors.ts";
import type { Cookie, Settled } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { mergeCookies } from "../../rules/cookies.ts";
import { takeAnswer } from "../../rules/pacing.ts";
import { admit } from "./admit.ts";
import { endLease, leaveDropped, originEntryOf, settleRobots, siteOf } from "./claim.ts";
import {
  changeValues,
  completeIfOver,
  type Desk,
  delay,
  isDetached,
  isRelink,
  isRobots,
  knowStart,
  levelOfPlace,
  raise,
  renumbered,
  requeueFront,
  seenValue,
  write,
} from "./desk.ts";
import { fitItems, forgetCut, isTold, noteCut } from "./items.ts";
import { UNNUMBERED } from "./journal.ts";
import type { LeaseEntry } from "./leases.ts";
import { DONE, depthOf, type Place, pack, RELINK_QUEUED } from "./place.ts";

type Answer = "applied" | "stale";

export function settle(desk: Desk, brought: readonly Settled[], links: readonly CrawlRequest[], accepts: (request: CrawlRequest) => boolean): Answer[] {
  const entries = brought.map((page) => desk.leases.find(page.token));
  const answers = firstUses(desk, brought, entries);
  checkKinds(brought, entries);
  const fit = fitItems(desk, brought, entries);
  const pages = fit?.pages ?? brought;
  const admission = admit(desk, links.length === 0 ? links : honest(desk, pages, entries, links), accepts);
  const outputs: Output[] = admission.owed ?? [];
  if (admission.duplicates !== null && admission.duplicates.length > 0)
    outputs.push({ page: null, listed: false, skipped: admission.duplicates, found: [], edges: [] });
  for (let i = 0; i < pages.length; i++) {
    const entry = entries[i];
    if (entry === undefined || answers[i] !== "applied") continue;
    const { settlement } = pages[i]!;
    if ((settlement.kind === "done" || settlement.kind === "dropped") && settlement.output !== null && !isRelink(desk, entry.place))
      outputs.push(settlement.output);
  }
  write(desk, outputs);
  if (admission.known > 0) raise(desk, "duplicates", admission.known);
  for (let i = 0; i < pages.length; i++) {
    const entry = entries[i];
    if (entry !== undefined && answers[i] === "applied") apply(desk, entry, pages[i]!, fit?.cut.get(i) ?? null);
    if (pages[i] !== brought[i] && pages[i]!.settlement.kind === "returned") answers[i] = "stale";
  }
  completeIfOver(desk);
  return answers;
}

/** Unknown tokens and second uses are stale; a lease revoked by `now` may still be handed back. */
function firstUses(desk: Desk, pages: readonly Settled[], entries: (LeaseEntry | undefined)[]): Answer[] {
  const used = pages.length > 1 ? new Set<string>() : null;
  return pages.map((page, i) => {
    if (used?.has(page.token)) {
      entries[i] = undefined;
      return "stale";
    }
    used?.add(page.token);
    if (entries[i] !== undefined) return "applied";
    return page.settlement.kind === "returned" && desk.revoked.delete(page.token) ? "applied" : "stale";
  });
}

function checkKinds(pages: readonly Settled[], entries: readonly (LeaseEntry | undefined)[]): void {
  for (let i = 0; i < pages.length; i++) {
    const entry = entries[i];
    const kind = pages[i]!.settlement.kind;
    if (entry === undefined || kind === "retry" || kind === "returned") continue;
    if (isRobots(entry.place) !== (kind === "robots"))
      throw new CrawlError("internal", `a ${entry.place.request.hop} request was settled as ${kind}: ${entry.place.request.url}`);
  }
}

/**
 * Redirect targets whose hop must not be recorded again owe nothing: the hop's lease was lost (its record is its next lease's affair),
 * or it was fetched for its links only.
 */
function honest(desk: Desk, pages: readonly Settled[], entries: readonly (LeaseEntry | undefined)[], links: readonly CrawlRequest[]): readonly CrawlRequest[] {
  if (pages.length === 0 || !links.some((link) => link.rest?.owed !== undefined)) return links;
  const recorded = new Set<string>();
  let doubtful = false;
  for (let i = 0; i < pages.length; i++) {
    const entry = entries[i];
    if (entry !== undefined && !isTold(desk, entry.place)) recorded.add(entry.place.request.url);
    else doubtful = true;
  }
  if (!doubtful) return links;
  return links.map((link) => {
    const hop = link.rest?.redirects?.at(-1)?.url;
    if (link.rest?.owed === undefined || hop === undefined || recorded.has(hop)) return link;
    return { ...link, rest: { ...link.rest, owed: [] } };
  });
}

/** `cut`: so many of its items are written, and the page is to be fetched for the rest. */
function apply(desk: Desk, entry: LeaseEntry, page: Settled, cut: number | null): void {
  const { host, place } = entry;
  const { settlement } = page;
  const now = desk.env.clock.now();
  const relink = isRelink(desk, place);
  const told = relink || isTold(desk, place);
  knowStart(desk, entry, page.sinceStartMs === null ? null : now - page.sinceStartMs);
  learn(desk, entry, page, now);
  endLease(desk, entry);
  if (!told && settlement.kind !== "returned") {
    for (const [name, by] of page.tally) raise(desk, name, by);
    if (page.values !== undefined) changeValues(desk, page.values);
  }
  if (page.newSeeds !== null && page.newSeeds.length > 0) {
    desk.newSeeds.push(...page.newSeeds);
    desk.journal?.seeds(page.newSeeds);
  }
  if (page.setCookies !== null && page.setCookies.length > 0) keepCookies(desk, host.key, page.setCookies);
  switch (settlement.kind) {
    case "done":
      if (settlement.counted && !told) desk.counted++;
      if (cut !== null) {
        noteCut(desk, place, cut);
        requeueFront(desk, forgiven(desk, place));
        break;
      }
      forgetCut(desk, place);
      leaveDone(desk, entry);
      break;
    case "retry":
      delay(desk, { ...place, attempt: place.attempt + 1 }, settlement.afterMs, relink);
      break;
    case "dropped":
      leaveDropped(desk, place);
      break;
    case "returned":
      requeueFront(desk, place);
      break;
    case "robots":
      answerRobots(desk, place, settlement.answer);
      break;
  }
  desk.hosts.place(host);
}

/** The place without the outputs of redirects that it owed: they are written with its record. */
function forgiven(desk: Desk, place: Place): Place {
  const { request } = place;
  if (request.rest?.owed === undefined) return place;
  return renumbered(desk, { ...place, request: { ...request, rest: { ...request.rest, owed: [] } } }, false, null);
}

/** What the answer says of its host. */
function learn(desk: Desk, entry: LeaseEntry, page: Settled, now: number): void {
  const { host } = entry;
  const heldBefore = host.pace.heldUntil;
  if (page.host !== null && desk.hosts.tune(host, page.host)) desk.journal?.host(host);
  if (host.gate !== null && (page.host?.notBeforeMs ?? 0) > 0) host.gate.hold(host.notBefore);
  if (page.settlement.kind !== "returned") host.settled++;
  if (page.answer === null) return;
  if (page.answer.kind === "good") {
    host.latencySumMs += page.answer.latencyMs;
    host.latencies++;
  }
  const asked = (page.host?.notBeforeMs ?? 0) > 0;
  takeAnswer(host.pace, page.answer, { epoch: entry.epoch, now, asked, random: desk.env.random() }, host.rules);
  if (host.pace.heldUntil <= heldBefore) return;
  desk.journal?.host(host);
  host.gate?.hold(host.pace.heldUntil);
}

/** The place ends with a page. Lowered meanwhile, it is queued again for its links (docs/decisions/0004). */
function leaveDone(desk: Desk, entry: LeaseEntry): void {
  const { place } = entry;
  const { request } = place;
  const level = levelOfPlace(desk, place);
  if (isDetached(place)) {
    desk.done++;
    desk.journal?.gone(place.seq);
    desk.levels.drop(level);
    return;
  }
  const depth = depthOf(seenValue(desk, place));
  if (desk.levels.on && depth < entry.depth) {
    // Held and queued count alike at its level.
    const again: CrawlRequest = { ...request, depth, rest: request.rest?.owed === undefined ? request.rest : { ...request.rest, owed: [] } };
    desk.seen.replace(request.idHi, request.idLo, pack(RELINK_QUEUED, depth));
    requeueAgain(desk, renumbered(desk, { request: again, attempt: 0, crashes: 0, seq: place.seq }, true, null));
    return;
  }
  desk.done++;
  desk.journal?.gone(place.seq);
  const value = pack(DONE, depth);
  desk.seen.replace(request.idHi, request.idLo, value);
  // With levels an entry that was left behind when the URL was lowered may outlive the one that was fetched: the log says that it is over.
  if (desk.levels.on) desk.journal?.seen(request, value);
  desk.levels.drop(level);
}

function requeueAgain(desk: Desk, place: Place): void {
  const { request } = place;
  const host = desk.hosts.of(request.host);
  desk.arena.pushFront(desk.hosts.laneOf(host, levelOfPlace(desk, place), request.priority), place);
  host.blocked = false;
  host.entries++;
  desk.queued++;
  desk.hosts.place(host);
}

function answerRobots(desk: Desk, place: Place, answer: Extract<Settled["settlement"], { kind: "robots" }>["answer"]): void {
  if (answer.kind !== "redirect") {
    settleRobots(desk, place, answer);
    return;
  }
  const { origin } = originEntryOf(desk, place);
  const { request } = answer;
  const hop: CrawlRequest = { ...request, hop: "robots", rest: { ...request.rest, robotsFor: origin } };
  requeueFront(desk, { request: hop, attempt: 0, crashes: 0, seq: UNNUMBERED });
}

export function keepCookies(desk: Desk, hostKey: string, set: readonly Cookie[]): void {
  const site = siteOf(desk, hostKey);
  const jar = mergeCookies(desk.jars.get(site) ?? [], set, desk.env.clock.epoch());
  if (jar.length === 0) desk.jars.delete(site);
  else desk.jars.set(site, jar);
  desk.journal?.cookies(site);
}
