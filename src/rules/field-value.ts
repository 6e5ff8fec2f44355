/** Header field values in the form HTTP libraries give them: each byte one character (Latin-1). What the bytes mean is decided where a field is read. */

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

/**
 * Without the blanks around it (RFC 9110 §5.5, RFC 6265 §5.2). Not `trim`, which takes byte A0, the second one of "à" in UTF-8, for a blank;
 * nor a regular expression, which takes quadratic time for long runs of blanks in the middle.
 */
export function trimBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}
