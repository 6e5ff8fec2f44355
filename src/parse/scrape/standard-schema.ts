/** The part of Standard Schema (https://standardschema.dev, version 1) that item schemas are used by, and what a schema tells of its columns. */

export interface StandardSchemaV1 {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult | Promise<SchemaResult>;
  };
}

export type SchemaResult = { readonly value: unknown; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Some libraries' schemas are functions. */
export function isSchema(value: unknown): value is StandardSchemaV1 {
  if (value === null || (typeof value !== "object" && typeof value !== "function") || !("~standard" in value)) return false;
  const standard = value["~standard"];
  return typeof standard === "object" && standard !== null && "validate" in standard && typeof standard.validate === "function";
}

/** `offers[0].price`; empty where the issue is of the whole. */
export function spellPath(path: SchemaIssue["path"]): string {
  let spelt = "";
  for (const part of path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    if (typeof key === "number") spelt += `[${key}]`;
    else spelt += spelt === "" ? String(key) : `.${String(key)}`;
  }
  return spelt;
}

/** The fields of the item that a schema lets through, in its order, where it names them: zod's `shape`, valibot's `entries`, or a JSON Schema. Null: it does not say. */
export function columnsOf(schema: StandardSchemaV1): readonly string[] | null {
  for (const name of ["shape", "entries"]) {
    const fields: unknown = Reflect.get(schema, name);
    if (typeof fields === "object" && fields !== null && !Array.isArray(fields)) return Object.keys(fields);
  }
  const described = jsonSchemaOf(schema);
  if (typeof described !== "object" || described === null || !("properties" in described)) return null;
  const { properties } = described;
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : null;
}

/** Standard JSON Schema: `~standard.jsonSchema.output({ target })`. Null where there is none, or none for this schema. */
function jsonSchemaOf(schema: StandardSchemaV1): unknown {
  const converter: unknown = Reflect.get(schema["~standard"], "jsonSchema");
  if (typeof converter !== "object" || converter === null || !("output" in converter) || typeof converter.output !== "function") return null;
  try {
    return converter.output({ target: "draft-2020-12" });
  } catch {
    // It says so by throwing: the schema cannot be put as JSON Schema, so that its columns stay unknown.
    return null;
  }
}
