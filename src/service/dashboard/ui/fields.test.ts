/** The form made from the schema that the service really gives. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJobSpec, shownSpec } from "../../../core/job-spec.ts";
import { openapiDocument } from "../../openapi.ts";
import { type Field, fieldFor, fieldsOf, specOf, textsOf } from "./fields.ts";

const fields = fieldsOf(openapiDocument() as Readonly<Record<string, unknown>>);
const typed = (texts: Readonly<Record<string, string>>) => (field: Field) => texts[field.path] ?? (field.control.kind === "flag" ? String(field.fallback) : "");
const controlOf = (path: string) => fields.find((field) => field.path === path)?.control;

test("every option of a job is a field with a sentence, in a group; seeds have their own place", () => {
  assert.ok(fields.length > 30);
  for (const { path, description, group, label } of fields) assert.ok(description !== "" && group !== "other" && label !== "", path);
  assert.equal(controlOf("seeds"), undefined);
});

test("fields have the control of their form", () => {
  assert.deepEqual(controlOf("scope.preset"), { kind: "choice", choices: ["page", "prefix", "host", "domain", "any"] });
  assert.deepEqual(controlOf("defaultScheme"), { kind: "choice", choices: ["http", "https"] });
  assert.deepEqual(controlOf("perHost.delay"), { kind: "text", numeric: false });
  assert.deepEqual(controlOf("limits.pages"), { kind: "text", numeric: true });
  assert.deepEqual(controlOf("robots"), { kind: "flag" });
  assert.deepEqual(controlOf("scope.include"), { kind: "list" });
  assert.deepEqual(controlOf("headers"), { kind: "pairs", separator: ":" });
  assert.deepEqual(controlOf("extract"), { kind: "pairs", separator: "=" });
  assert.deepEqual(controlOf("hosts"), { kind: "json" });
});

test("nothing typed is an empty spec; what is typed is what the service takes", () => {
  assert.deepEqual(specOf(fields, typed({})), { spec: {}, problems: [] });
  const texts = {
    ...{
      "limits.pages": "10",
      "perHost.delay": "2s",
      robots: "false",
      "scope.include": "/docs/**\n\n*.html",
      extract: "title=h1\nlinks[]=a@href",
      "scope.preset": "domain",
    },
    ...{ headers: "X-A: b: c\nAccept-Language: de", traps: "repeats=4\nall=off", hosts: '{"a.example":{"delay":"1s"}}', userAgent: "1", images: "true" },
  };
  const { spec, problems } = specOf(fields, typed(texts));
  assert.deepEqual(problems, []);
  assert.deepEqual(spec, {
    ...{ scope: { include: ["/docs/**", "*.html"], preset: "domain" }, traps: { repeats: 4, all: "off" }, extract: { title: "h1", "links[]": "a@href" } },
    ...{ limits: { pages: 10 }, perHost: { delay: "2s" }, hosts: { "a.example": { delay: "1s" } }, robots: false, userAgent: "1", images: true },
    headers: { "X-A": "b: c", "Accept-Language": "de" },
  });
  parseJobSpec(spec, { scrapers: false });
});

test("a field that wants JSON says when it is none", () => {
  const { problems } = specOf(fields, typed({ hosts: "{" }));
  assert.deepEqual([problems.length, problems[0]?.option], [1, "hosts"]);
});

test("the options of a job go back into the form, all but defaults and what is hidden", () => {
  const wanted = {
    limits: { pages: 7 },
    scope: { exclude: ["*.pdf"] },
    headers: { Cookie: "a=b" },
    robots: false,
    perHost: { delay: "2s" },
    extract: { title: "h1" },
  };
  const texts = textsOf(fields, shownSpec(parseJobSpec(wanted, { scrapers: false })));
  assert.deepEqual(Object.fromEntries(texts), { "scope.exclude": "*.pdf", extract: "title=h1", "limits.pages": "7", "perHost.delay": "2000", robots: "false" });
  const { spec } = specOf(fields, typed(Object.fromEntries(texts)));
  assert.deepEqual(parseJobSpec(spec, { scrapers: false }), parseJobSpec({ ...wanted, headers: {} }, { scrapers: false }));
});

test("a problem finds its field: by its option, what is below it, or its line", () => {
  assert.equal(fieldFor({ option: "limits.pages", message: "" }, fields), "limits.pages");
  assert.equal(fieldFor({ option: "headers.X-A", message: "" }, fields), "headers");
  assert.equal(fieldFor({ line: 3, text: "x", message: "" }, fields), "seeds");
  assert.equal(fieldFor({ option: "urls", message: "" }, fields), "seeds");
  assert.equal(fieldFor({ option: "Idempotency-Key", message: "" }, fields), null);
});
