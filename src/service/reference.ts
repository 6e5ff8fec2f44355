/** docs/api.md, made from the route table and the schemas. `npm run docs` writes it, a test compares. */
import { answersOf } from "./openapi.ts";
import { type Answer, COMMON_ANSWERS, ROUTES, type Route, STRAY_ANSWERS } from "./routes.ts";
import { componentSchemas, type Schema } from "./schemas.ts";

const INTRO = `<!-- Made by \`npm run docs\` from src/service/routes.ts and src/service/schemas.ts. Do not edit. -->

# The HTTP interface

Of \`skein serve\` ([service.md](service.md) is the tutorial). The same as OpenAPI 3.1: \`GET /openapi.json\`.

- A job's number counts up from 0 and is the same in both APIs. Times are ISO 8601 in UTC, durations milliseconds, sizes bytes. JSON is compact.
- **Errors** are problem details (RFC 9457, \`application/problem+json\`): \`type\`, \`title\`, \`status\`, \`detail\`, and where the body or a parameter is wrong \`errors\`, all of them at once, each with \`option\`, \`pointer\` or \`line\`, and \`message\`.
- With a **token** every route but those marked *open* asks for \`Authorization: Bearer TOKEN\`.
- **Lists** go on in \`Link: <…>; rel="next"\`, relative to the service. Cursors stay good while a job runs.
- \`HEAD\` is answered wherever \`GET\` is; \`OPTIONS\` says what a path takes in \`Allow\`.
- **Parameters** that a route does not know are refused (400, with the names of those it knows), but for those of the dashboard.
- A body may come with \`Content-Encoding: gzip\`; the limits hold for it as it comes and unpacked. Other codings are refused (415). JSON may have 8 MB, an upload of URLs what \`--max-upload\` says (413).
`;

const GROUPS = { "three calls": "The three calls", jobs: "Jobs", records: "Records", service: "The service" } as const;

const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const escaped = (text: string) => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");

function answerCell({ description, content, headers }: Answer): string {
  const types = Object.keys(content ?? {}).filter((type) => type !== "application/problem+json");
  const named = Object.entries(headers ?? {}).map(([name, text]) => `\`${name}\`: ${text}`);
  return escaped(
    [description, types.length > 0 ? `As ${types.map((type) => `\`${type}\``).join(", ")}.` : "", ...named].filter((part) => part !== "").join(" "),
  );
}

function section(route: Route): string {
  const { method, path, summary, description, open, parameters = [], body, answers } = route;
  const lines = [`### ${method} ${path}`, "", `${summary}${open ? " *Open.*" : ""}`];
  if (description !== undefined) lines.push("", description);
  if (parameters.length > 0) {
    lines.push("", row(["parameter", "in", "meaning"]), row(["---", "---", "---"]));
    for (const { name, in: place, description: meaning, required, schema } of parameters) {
      const { maximum, default: usual } = schema;
      const bounds = typeof maximum === "number" ? ` 1 to ${maximum}, by default ${usual}.` : "";
      lines.push(row([`\`${name}\``, place, `${escaped(meaning)}${bounds}${required ? " Required." : ""}`]));
    }
  }
  if (body !== undefined) {
    const named = (schema: Schema) => (typeof schema["$ref"] === "string" ? ` (${link(schema["$ref"])})` : "");
    lines.push(
      "",
      `Body: ${Object.entries(body.content)
        .map(([type, schema]) => `\`${type}\`${named(schema)}`)
        .join(", ")}.${body.required ? "" : " It may be left out."}`,
    );
  }
  const own = Object.keys(answers).map(Number);
  const all = answersOf(route);
  lines.push("", row(["status", "answer"]), row(["---", "---"]));
  for (const status of own) {
    const answer = all[status];
    if (answer !== undefined) lines.push(row([String(status), answerCell(answer) + schemaNote(answer)]));
  }
  return `${lines.join("\n")}\n`;
}

const link = (pointer: string) => {
  const name = pointer.split("/").at(-1) ?? "";
  return `[${name}](#${name.toLowerCase()})`;
};

function schemaNote({ content }: Answer): string {
  const schema = content?.["application/json"];
  if (schema === undefined) return "";
  const { $ref, items } = schema;
  if (typeof $ref === "string") return ` ${link($ref)}`;
  const inner = typeof items === "object" && items !== null && "$ref" in items ? items.$ref : null;
  return typeof inner === "string" ? ` A list of ${link(inner)}` : "";
}

function typeText(schema: Schema): string {
  const { $ref, type, anyOf, enum: words, items } = schema;
  if (typeof $ref === "string") return link($ref);
  if (Array.isArray(words)) return words.map((word) => `\`${word}\``).join(" ");
  // `as`: nested schemas are schemas.
  if (Array.isArray(anyOf)) return (anyOf as Schema[]).map(typeText).join(" or ");
  if (type === "array" && typeof items === "object" && items !== null) return `list of ${typeText(items as Schema)}`;
  return Array.isArray(type) ? type.join(" or ") : String(type ?? "any");
}

/** Schemas that another page describes field by field. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  JobSpec: "The options marked *job* in [options.md](options.md).",
  Page: "A page record: [records.md](records.md#page-records).",
  Skipped: "A skipped URL: [records.md](records.md#skipped-urls).",
  Item: "The fields that the scraper or `extract` gave, and `_meta` ([records.md](records.md)).",
};

function schemaSection(name: string, schema: Schema): string {
  const elsewhere = ELSEWHERE[name];
  if (elsewhere !== undefined) return `### ${name}\n\n${elsewhere}\n`;
  const nested = schema["additionalProperties"];
  const byName = typeof nested === "object" && nested !== null ? (nested as Schema) : null; // `as`: a nested schema
  const properties = Object.entries((schema["properties"] ?? byName?.["properties"] ?? {}) as Readonly<Record<string, Schema>>); // `as`: likewise
  const required = schema["required"];
  const rows = properties.map(([key, value]) => {
    const optional = Array.isArray(required) && !required.includes(key) ? " (may be absent)" : "";
    return row([`\`${key}\``, escaped(typeText(value)), escaped(`${value["description"] ?? ""}${optional}`)]);
  });
  const note = typeof schema["description"] === "string" ? `${schema["description"]}\n\n` : "";
  return `### ${name}\n\n${note}${[row(["field", "type", "meaning"]), row(["---", "---", "---"]), ...rows].join("\n")}\n`;
}

/** The whole page. */
export function apiPage(): string {
  const groups = Object.entries(GROUPS).map(
    ([group, title]) =>
      `\n## ${title}\n\n${ROUTES.filter((route) => route.group === group)
        .map(section)
        .join("\n")}`,
  );
  const common = `\n## Answers of every route\n\nWhere a route lists such a status itself, what stands there holds. Open routes need no token; the dashboard takes any parameter.\n\n${statusTable(COMMON_ANSWERS)}\n`;
  const stray = `\n## Answers to other requests\n\nOf every path, also of those above when they are asked in another way.\n\n${statusTable(STRAY_ANSWERS)}\n`;
  const schemas = `\n## Objects\n\n${Object.entries(componentSchemas())
    .map(([name, schema]) => schemaSection(name, schema))
    .join("\n")}`;
  return INTRO + groups.join("") + common + stray + schemas;
}

const statusTable = (answers: Readonly<Record<number, Answer>>): string =>
  [row(["status", "answer"]), row(["---", "---"]), ...Object.entries(answers).map(([status, answer]) => row([status, answerCell(answer)]))].join("\n");
