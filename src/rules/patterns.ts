/** Patterns by which users choose URLs (`--include`, `--exclude`, `--follow`, `--list`). What a match means is decided in scope.ts. */
import { CrawlError, type OptionProblem } from "../core/errors.ts";

/** A pattern ready to be asked. */
export interface Pattern {
  /** As the user wrote it. */
  readonly text: string;
  /** How it was read, for `-v`. */
  readonly describe: string;
  /** Takes a canonical URL (rules/url.ts). */
  matches(url: string): boolean;
}

/** Steps of a glob beside plain character codes. */
const ONE = -1; // "?": one character or one escape, not "/"
const SEGMENT = -2; // "*": any run without "/"
const ANY = -3; // "**": any run
const FOLDERS = -4; // "**/" at the start of a segment: nothing, or any run that ends with "/"

const SLASH = 47;
const PERCENT = 37;

/** In the form of canonical URLs: what is not ASCII and blanks are escaped, escapes have capitals. Other characters stay as they are. */
function canonicalText(text: string): string {
  const escaped = text.replace(/[^\x21-\x7e]+/g, (run) => encodeURIComponent(run.toWellFormed()));
  return escaped.replace(/%[0-9a-f]{2}/gi, (form) => {
    const code = Number.parseInt(form.slice(1), 16);
    return /[\w.~-]/.test(String.fromCharCode(code)) ? String.fromCharCode(code) : form.toUpperCase();
  });
}

function globSteps(glob: string): Int32Array {
  const steps: number[] = [];
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i];
    if (c === "?") steps.push(ONE);
    else if (c !== "*") steps.push(glob.charCodeAt(i));
    else {
      const start = i;
      while (glob[i + 1] === "*") i++;
      if (i === start) steps.push(SEGMENT);
      else if (glob[i + 1] === "/" && (start === 0 || glob[start - 1] === "/")) {
        steps.push(FOLDERS);
        i++;
      } else steps.push(ANY);
    }
  }
  return Int32Array.from(steps);
}

/**
 * Does the glob match text[from, to) whole? A failed attempt goes back to the last "*", and once that would have to cross a "/" to the last "**":
 * earlier wildcards need never be tried again, since the later "**" can take whatever they would give up. So the time is at most square, for any glob.
 * One function over 40 lines: a state machine that runs for every link.
 */
function globMatches(steps: Int32Array, text: string, from: number, to: number): boolean {
  let at = from;
  let step = 0;
  let starStep = -1;
  let starAt = 0;
  let wideStep = -1;
  let wideAt = 0;
  for (;;) {
    const wanted = step < steps.length ? steps[step]! : 0;
    if (wanted === SEGMENT) {
      starStep = step++;
      starAt = at;
      continue;
    }
    if (wanted === ANY || wanted === FOLDERS) {
      wideStep = step++;
      wideAt = at;
      starStep = -1;
      continue;
    }
    if (at < to) {
      const code = text.charCodeAt(at);
      if (wanted === code) {
        at++;
        step++;
        continue;
      }
      if (wanted === ONE && code !== SLASH) {
        at += code === PERCENT && at + 2 < to ? 3 : 1;
        step++;
        continue;
      }
    } else if (step === steps.length) return true;
    if (starStep >= 0 && starAt < to && text.charCodeAt(starAt) !== SLASH) {
      at = ++starAt;
      step = starStep + 1;
      continue;
    }
    if (wideStep < 0) return false;
    starStep = -1;
    if (steps[wideStep] === FOLDERS) {
      const slash = text.indexOf("/", wideAt);
      if (slash < 0 || slash >= to) return false;
      wideAt = slash + 1;
    } else if (wideAt++ >= to) return false;
    at = wideAt;
    step = wideStep + 1;
  }
}

/** The character the text must end with, 0 when any may: most links fail here. */
function lastCode(steps: Int32Array): number {
  const last = steps.at(-1);
  return last !== undefined && last > 0 ? last : 0;
}

type Part = "segment" | "path" | "url";

function globPattern(text: string, part: Part, glob: string, describe: string): Pattern {
  const steps = globSteps(glob);
  const last = lastCode(steps);
  return {
    text,
    describe,
    matches(url) {
      const query = url.indexOf("?");
      const to = query < 0 ? url.length : query;
      if (last !== 0 && url.charCodeAt(to - 1) !== last) return false;
      if (part === "url") return globMatches(steps, url, 0, to);
      if (part === "segment") return globMatches(steps, url, url.lastIndexOf("/", to - 1) + 1, to);
      const path = url.indexOf("/", url.indexOf("://") + 3);
      return path >= 0 && globMatches(steps, url, path, to);
    },
  };
}

/** A pattern that ends with "/" stands for all that lies below. */
const below = (glob: string): string => (glob.endsWith("/") ? `${glob}**` : glob);

/** Scheme and host are written in lower case, the port of the scheme is dropped, the root gets its slash. */
function wholeUrlGlob(text: string): string {
  const start = text.indexOf("://") + 3;
  const slash = text.indexOf("/", start);
  const end = slash < 0 ? text.length : slash;
  const scheme = text.slice(0, start).toLowerCase();
  const port = scheme === "http://" ? ":80" : scheme === "https://" ? ":443" : "";
  const host = asciiHost(text.slice(start, end).toLowerCase());
  return scheme + (port !== "" && host.endsWith(port) ? host.slice(0, -port.length) : host) + canonicalText(slash < 0 ? "/" : text.slice(slash));
}

/** Labels outside ASCII in Punycode, one by one, since wildcards may stand beside them. */
function asciiHost(host: string): string {
  if (!/[^\0-\x7f]/.test(host)) return host;
  const labels = host.split(".").map((label) => (/[^\0-\x7f]/.test(label) ? (URL.parse(`http://${label}/`)?.hostname ?? label) : label));
  return labels.join(".");
}

function invalid(option: string, message: string, cause?: unknown): CrawlError {
  return new CrawlError("invalid-options", `${option}: ${message}`, { cause, problems: [{ option, message }] });
}

/**
 * Compiles a pattern: without "/" a glob for the last path segment; with "/" for the path, from its start if the pattern starts with "/", else from the start
 * of any folder; with "://" for the whole URL. These leave the query out of account. `re:` starts a regular expression that is searched in the whole URL.
 * In globs "*" stays within a segment, "**" does not, "?" is one character; a "/" at the end means all that lies below. Paths are case-sensitive.
 * Throws CrawlError `invalid-options`, with one problem for `option`, when a regular expression is wrong or the pattern is empty.
 */
export function compilePattern(text: string, option = "pattern"): Pattern {
  if (text.trim() === "") throw invalid(option, `"${text}": expected a pattern such as *.html, /docs/**, https://*.example.com/** or re:EXPRESSION`);
  if (text.startsWith("re:")) {
    const expression = regularExpression(text, option);
    return { text, describe: `regular expression ${expression} on the whole URL`, matches: (url) => expression.test(url) };
  }
  if (text.includes("://")) {
    const glob = below(wholeUrlGlob(text));
    return globPattern(text, "url", glob, `whole URL without query is ${glob}`);
  }
  const glob = below(canonicalText(text));
  if (!text.includes("/")) return globPattern(text, "segment", glob, `last path segment is ${glob}`);
  if (text.startsWith("/")) return globPattern(text, "path", glob, `path is ${glob}`);
  return globPattern(text, "path", `/**/${glob}`, `path is ${glob}, starting at any folder`);
}

function regularExpression(text: string, option: string): RegExp {
  try {
    return new RegExp(text.slice(3));
  } catch (cause) {
    // RegExp throws SyntaxError only, whose message repeats the expression and says what is wrong with it.
    throw invalid(option, `"${text}": ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

/** Compiles lists of patterns by the option they come from; all wrong ones are reported in one CrawlError `invalid-options`. */
export function compilePatterns<Option extends string>(lists: Readonly<Record<Option, readonly string[]>>): Readonly<Record<Option, readonly Pattern[]>> {
  const problems: OptionProblem[] = [];
  const compiled = (option: Option): readonly Pattern[] =>
    lists[option].flatMap((text) => {
      try {
        return [compilePattern(text, option)];
      } catch (error) {
        if (!(error instanceof CrawlError)) throw error;
        problems.push(...error.problems);
        return [];
      }
    });
  // The keys of a record of known options are those options.
  const options = Object.keys(lists) as Option[];
  // One entry for each option, so that the record is whole.
  const result = Object.fromEntries(options.map((option) => [option, compiled(option)])) as Record<Option, readonly Pattern[]>;
  if (problems.length === 0) return result;
  throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}
