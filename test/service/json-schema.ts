/** For tests only: as much of JSON Schema 2020-12 as the OpenAPI document uses. A keyword that is not known here is a failure, not a pass. */
export type Schema = Readonly<Record<string, unknown>>;

const NOTES = new Set(["description", "default", "format", "title"]);

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value;
}

/** What is wrong with the value, as sentences with their place; empty: nothing. */
export function faultsOf(value: unknown, schema: Schema, components: Readonly<Record<string, Schema>>, place = "#"): string[] {
  const inner = (item: unknown, next: unknown, at: string) => faultsOf(item, next as Schema, components, at); // `as`: schemas nest
  const faults: string[] = [];
  const fields = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : null;
  for (const [keyword, rule] of Object.entries(schema)) {
    if (NOTES.has(keyword) || keyword.startsWith("x-")) continue;
    switch (keyword) {
      case "$ref": {
        const name = String(rule).split("/").at(-1) ?? "";
        const target = components[name];
        faults.push(...(target === undefined ? [`${place}: no schema ${name}`] : inner(value, target, place)));
        break;
      }
      case "type": {
        const given = typeOf(value);
        const allowed = Array.isArray(rule) ? rule : [rule];
        if (!allowed.includes(given) && !(given === "integer" && allowed.includes("number"))) faults.push(`${place}: ${given}, not ${allowed}`);
        break;
      }
      case "enum":
        if (!(rule as unknown[]).includes(value)) faults.push(`${place}: ${JSON.stringify(value)} is none of ${JSON.stringify(rule)}`);
        break;
      case "const":
        if (rule !== value) faults.push(`${place}: not ${rule}`);
        break;
      case "anyOf":
        if ((rule as Schema[]).every((option) => inner(value, option, place).length > 0)) faults.push(`${place}: fits none of anyOf`);
        break;
      case "minimum":
        if (typeof value === "number" && value < Number(rule)) faults.push(`${place}: below ${rule}`);
        break;
      case "maximum":
        if (typeof value === "number" && value > Number(rule)) faults.push(`${place}: above ${rule}`);
        break;
      case "minLength":
        if (typeof value === "string" && value.length < Number(rule)) faults.push(`${place}: too short`);
        break;
      case "maxLength":
        if (typeof value === "string" && value.length > Number(rule)) faults.push(`${place}: too long`);
        break;
      case "pattern":
        if (typeof value === "string" && !new RegExp(String(rule)).test(value)) faults.push(`${place}: does not match`);
        break;
      case "items":
        if (Array.isArray(value)) for (const [index, item] of value.entries()) faults.push(...inner(item, rule, `${place}/${index}`));
        break;
      case "required":
        for (const name of rule as string[]) if (fields !== null && !fields.some(([key]) => key === name)) faults.push(`${place}: ${name} is missing`);
        break;
      case "minProperties":
        if (fields !== null && fields.length < Number(rule)) faults.push(`${place}: too few`);
        break;
      case "maxProperties":
        if (fields !== null && fields.length > Number(rule)) faults.push(`${place}: too many`);
        break;
      case "propertyNames":
        for (const [key] of fields ?? []) faults.push(...inner(key, rule, `${place}/${key}`));
        break;
      case "properties":
        for (const [key, item] of fields ?? []) if (Object.hasOwn(rule as Schema, key)) faults.push(...inner(item, (rule as Schema)[key], `${place}/${key}`));
        break;
      case "additionalProperties":
        for (const [key, item] of fields ?? []) {
          if (Object.hasOwn((schema["properties"] ?? {}) as Schema, key) || rule === true) continue;
          if (rule === false) faults.push(`${place}: ${key} is not in the schema`);
          else faults.push(...inner(item, rule, `${place}/${key}`));
        }
        break;
      default:
        faults.push(`${place}: the keyword ${keyword} is not understood by this test`);
    }
  }
  return faults;
}
