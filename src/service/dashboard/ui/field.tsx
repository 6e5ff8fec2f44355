/** One option of the form with its label, description, allowed form and problem. */
import type { Field } from "./fields.ts";
import { isPreset, textOf } from "./fields.ts";
import { bytes, capital } from "./format.ts";

interface FieldProps {
  readonly field: Field;
  /** What it starts with; null: the default. */
  readonly text: string | null;
  readonly problem: string | null;
}

/** Of the default, in the words of the field. */
function presetWords(field: Field): string {
  if (isPreset(field.fallback) || (Array.isArray(field.fallback) && field.fallback.length === 0)) return "not set";
  const text = textOf(field, field.fallback);
  if (field.unit === "bytes" && /^\d+$/.test(text)) return bytes(Number(text));
  return field.unit === "ms" && /^\d+$/.test(text) ? `${Number(text) / 1_000}s` : text;
}

function Control({ field, text, problem }: FieldProps) {
  const { path, control } = field;
  const common = {
    id: `field-${path}`,
    name: path,
    "aria-invalid": problem !== null,
    "aria-describedby": `hint-${path}${problem === null ? "" : ` problem-${path}`}`,
    autocomplete: "off" as const,
  };
  switch (control.kind) {
    case "flag":
      return <input type="checkbox" {...common} defaultChecked={text === null ? field.fallback === true : text === "true"} />;
    case "choice":
      return (
        <select {...common} defaultValue={text ?? ""}>
          <option value="">Default: {presetWords(field)}</option>
          {control.choices.map((choice) => (
            <option key={choice} value={choice} selected={choice === text}>
              {choice}
            </option>
          ))}
        </select>
      );
    case "text":
      return (
        <input
          type="text"
          {...common}
          {...(control.numeric ? { inputMode: "decimal" as const } : {})}
          spellcheck={false}
          placeholder={presetWords(field)}
          defaultValue={text ?? ""}
        />
      );
    default:
      return <textarea rows={2} spellcheck={false} {...common} defaultValue={text ?? ""} />;
  }
}

export function FieldRow(props: FieldProps) {
  const { field, problem } = props;
  const { path, label, description, form, control } = field;
  const isFlag = control.kind === "flag";
  const says = control.kind !== "choice" && !isFlag && form !== null ? form : null;
  return (
    <div class={`field${isFlag ? " field-flag" : ""}${control.kind === "list" || control.kind === "pairs" || control.kind === "json" ? " field-long" : ""}`}>
      {isFlag && <Control {...props} />}
      <label for={`field-${path}`} title={path}>
        {label}
      </label>
      <p class="soft" id={`hint-${path}`}>
        {description}
        {says !== null && <> {capital(says.length > 160 ? `${says.slice(0, 160)} …` : says)}.</>}
      </p>
      {!isFlag && <Control {...props} />}
      {problem !== null && (
        <p class="problem" id={`problem-${path}`}>
          {problem}
        </p>
      )}
    </div>
  );
}
