/** What undici's parser may let pass in a chunked body, as browsers do. It has no option for that, so that this reaches into it; where a later undici has no such door, it stays strict. */
import type { Socket } from "node:net";

const SPACES = "llhttp_set_lenient_spaces_after_chunk_size";

/** The parser that undici puts on a socket: the functions of llhttp, and where its state lies. */
interface Parser {
  readonly llhttp: Readonly<Record<string, unknown>>;
  readonly ptr: number;
}

function isParser(value: unknown): value is Parser {
  return (
    typeof value === "object" && value !== null && "ptr" in value && typeof value.ptr === "number" && "llhttp" in value && typeof value.llhttp === "object"
  );
}

/** Blanks behind a chunk's size are read over from now on. To be called when undici has taken the socket. */
export function allowOddChunks(socket: Socket): void {
  for (const key of Object.getOwnPropertySymbols(socket)) {
    const parser: unknown = Reflect.get(socket, key);
    if (!isParser(parser)) continue;
    const set = parser.llhttp[SPACES];
    if (typeof set === "function") set(parser.ptr, 1);
  }
}
