/** Durations, sizes and rates as people write them, to numbers and back. Knows nothing of options. */

const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/;
const DURATION_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZE = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|kib|mib|gib)?$/i;
const SIZE_BYTES: Readonly<Record<string, number>> = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 };
const RATE = /^(\d+(?:\.\d+)?)\s*(?:\/\s*(s|sec|second|m|min|minute|h|hour))?$/;

/** "250ms", "1s", "2m", "1h", "30d" or a number of milliseconds → milliseconds; null when it is neither. */
export function parseDuration(text: string | number): number | null {
  if (typeof text === "number") return Number.isFinite(text) && text >= 0 ? text : null;
  const match = DURATION.exec(text.trim());
  return match ? Number(match[1]) * (DURATION_MS[match[2] ?? "ms"] ?? 1) : null;
}

/** "10MB", "64KiB" or a number of bytes → whole bytes; null when it is neither. */
export function parseSize(text: string | number): number | null {
  if (typeof text === "number") return Number.isFinite(text) && text >= 0 ? Math.floor(text) : null;
  const match = SIZE.exec(text.trim());
  return match ? Math.floor(Number(match[1]) * (SIZE_BYTES[(match[2] ?? "b").toLowerCase()] ?? 1)) : null;
}

/** "120/min", "2/s", "500/h" or a number a minute → requests a minute; null when it is neither. */
export function parseRate(text: string | number): number | null {
  if (typeof text === "number") return Number.isFinite(text) && text > 0 ? text : null;
  const match = RATE.exec(text.trim());
  if (!match || Number(match[1]) <= 0) return null;
  const per = match[2] ?? "min";
  return Number(match[1]) * (per.startsWith("s") ? 60 : per.startsWith("h") ? 1 / 60 : 1);
}

/** The shortest exact spelling that parseDuration reads back: 30000 → "30s". */
export function spellDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"]) {
    const size = DURATION_MS[unit] ?? 1;
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}

/** The shortest exact spelling that parseSize reads back: 10000000 → "10MB". */
export function spellSize(bytes: number): string {
  for (const unit of ["GB", "MB", "KB"]) {
    const size = SIZE_BYTES[unit.toLowerCase()] ?? 1;
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return `${bytes}`;
}

/** A whole number as people read it: 1,234. */
export function spellNumber(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** "1 page", "1,234 pages". */
export function spellCount(count: number, one: string, more = `${one}s`): string {
  return `${spellNumber(count)} ${count === 1 ? one : more}`;
}
