/** The form for a new job: seeds, the options most asked for, and all others of the schema in their groups. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiProblem, createJob, getDocument, getJob } from "./api.ts";
import { FieldRow } from "./field.tsx";
import { type Field, fieldFor, fieldsOf, linesOf, specOf, textsOf } from "./fields.ts";
import { capital, count } from "./format.ts";
import { Notice } from "./parts.tsx";
import { go, hrefOf } from "./router.ts";
import { announce, usePoll } from "./store.ts";
import type { Job, ProblemEntry } from "./types.ts";

/** Shown at once; the others are in groups that open. */
const FIRST = ["scope.preset", "maxDepth", "limits.pages", "images"];

interface Failure {
  readonly detail: string;
  readonly entries: readonly ProblemEntry[];
}

/** Random, also where the page came over plain HTTP and `crypto.randomUUID` is not there. */
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** What stands in a control, by the name of its field. */
function typedIn(form: HTMLFormElement): (name: string) => string {
  return (name) => {
    const control = form.elements.namedItem(name);
    if (control instanceof HTMLInputElement && control.type === "checkbox") return String(control.checked);
    return control instanceof HTMLInputElement || control instanceof HTMLTextAreaElement || control instanceof HTMLSelectElement ? control.value : "";
  };
}

async function send(form: HTMLFormElement, fields: readonly Field[], key: string): Promise<Job> {
  const typed = typedIn(form);
  const { spec, problems } = specOf(fields, ({ path }) => typed(path));
  const seeds = linesOf(typed("seeds"));
  const chooser = form.elements.namedItem("file");
  const file = chooser instanceof HTMLInputElement ? (chooser.files?.[0] ?? null) : null;
  const missing = seeds.length === 0 && file === null ? [{ option: "seeds", message: "give at least one URL, or choose a file of them" }] : [];
  if (problems.length + missing.length > 0) throw new ApiProblem(400, "Some entries are wrong.", [...missing, ...problems]);
  // A file goes as it is, never through memory as a whole; what was typed goes before it.
  if (file !== null) return createJob(spec, new Blob([seeds.map((line) => `${line}\n`).join(""), file]), key);
  return createJob({ ...spec, seeds }, null, key);
}

function failureOf(error: unknown): Failure {
  if (error instanceof ApiProblem) {
    const lines = error.rejected.map(({ line, text, reason }) => ({ line, text, message: reason }));
    const entries = error.errors.length > 0 ? error.errors : lines;
    return { detail: error.message, entries };
  }
  return { detail: error instanceof Error ? error.message : String(error), entries: [] };
}

const entryWords = ({ line, text, message }: ProblemEntry) =>
  line === undefined ? message : `line ${line}${text === undefined ? "" : ` (${text})`}: ${message}`;
const MOST_LINES = 8;

function Summary({ failure, fields, box }: { readonly failure: Failure; readonly fields: readonly Field[]; readonly box: RefObject<HTMLDivElement | null> }) {
  const { entries } = failure;
  const jump = (path: string) => {
    const control = document.getElementById(`field-${path}`);
    control?.closest("details")?.setAttribute("open", "");
    control?.focus();
  };
  return (
    <div class="notice notice-bad" role="alert" aria-label="Problems" tabIndex={-1} ref={box}>
      <p>
        <strong>The job was not started:</strong> {failure.detail}
      </p>
      <ul>
        {entries.slice(0, MOST_LINES).map((entry) => {
          const path = fieldFor(entry, fields);
          const label = path === null ? (entry.option ?? "") : path === "seeds" ? "Seeds" : (fields.find((field) => field.path === path)?.label ?? path);
          return (
            <li key={`${entry.option}${entry.line}${entry.message}`}>
              {path === null ? (
                label !== "" && `${label}: `
              ) : (
                <button type="button" class="link" onClick={() => jump(path)}>
                  {label}
                </button>
              )}{" "}
              {entryWords(entry)}
            </li>
          );
        })}
        {entries.length > MOST_LINES && <li>and {count(entries.length - MOST_LINES)} more</li>}
      </ul>
    </div>
  );
}

interface FormProps {
  readonly fields: readonly Field[];
  readonly seeds: readonly string[];
  readonly texts: ReadonlyMap<string, string>;
}

function problemsFor(path: string, failure: Failure | null, fields: readonly Field[]): string | null {
  const entries = failure?.entries.filter((entry) => fieldFor(entry, fields) === path) ?? [];
  return entries.length === 0 ? null : entries.slice(0, 3).map(entryWords).join("; ") + (entries.length > 3 ? `; and ${entries.length - 3} more` : "");
}

function JobForm({ fields, seeds, texts }: FormProps) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const summary = useRef<HTMLDivElement>(null);
  const key = useRef(newKey());
  useEffect(() => {
    if (failure !== null) summary.current?.focus();
  }, [failure]);
  const submit = async (form: HTMLFormElement) => {
    if (busy) return;
    setBusy(true);
    try {
      const job = await send(form, fields, key.current);
      announce(`Job ${job.id} was started`);
      const rejected = job.rejectedTotal ?? job.rejected?.length ?? 0;
      go(hrefOf(`jobs/${job.id}`, { rejected: rejected === 0 ? null : String(rejected) }));
    } catch (error) {
      setFailure(failureOf(error));
      setBusy(false);
    }
  };
  const first = FIRST.flatMap((path) => fields.filter((field) => field.path === path));
  const groups = Map.groupBy(
    fields.filter((field) => !first.includes(field)),
    ({ group }) => group,
  );
  const row = (field: Field) => (
    <FieldRow key={field.path} field={field} text={texts.get(field.path) ?? null} problem={problemsFor(field.path, failure, fields)} />
  );
  const seedProblem = problemsFor("seeds", failure, fields);
  return (
    <form
      class="job-form"
      noValidate
      // Something else is wanted now, so it is no repetition of the same wish.
      onInput={() => (key.current = newKey())}
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      {failure !== null && <Summary failure={failure} fields={fields} box={summary} />}
      <section class="card" aria-label="Start">
        <div class="field">
          <label for="field-seeds">Seeds</label>
          <p class="soft" id="hint-seeds">
            URLs at which the crawl starts, one a line.
          </p>
          <textarea
            id="field-seeds"
            name="seeds"
            rows={4}
            spellcheck={false}
            defaultValue={seeds.join("\n")}
            aria-invalid={seedProblem !== null}
            aria-describedby={`hint-seeds${seedProblem === null ? "" : " problem-seeds"}`}
          />
          {seedProblem !== null && (
            <p class="problem" id="problem-seeds">
              {seedProblem}
            </p>
          )}
        </div>
        <div class="field">
          <label for="field-file">Or a file of URLs</label>
          <input id="field-file" name="file" type="file" accept=".txt,.csv,text/plain" />
        </div>
        <div class="fields">{first.map(row)}</div>
      </section>
      {[...groups].map(([group, members]) => (
        <details key={group} class="card" open={members.some(({ path }) => texts.has(path) || problemsFor(path, failure, fields) !== null)}>
          <summary>
            <h2>{capital(group)}</h2>
            <span class="soft">{members.length} options</span>
          </summary>
          <div class="fields">{members.map(row)}</div>
        </details>
      ))}
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={busy}>
          {busy ? "Starting …" : "Start job"}
        </button>
      </div>
    </form>
  );
}

export function NewJobPage({ from }: { readonly from: string | null }) {
  const { value, problem } = usePoll(from ?? "", null, async (signal) => {
    const fields = fieldsOf(await getDocument(signal));
    const job = from === null || !/^\d{1,15}$/.test(from) ? null : await getJob(Number(from), signal);
    return { fields, job };
  });
  return (
    <>
      <h1 tabIndex={-1}>New job</h1>
      {value?.job && (
        <Notice>
          With the options of job {value.job.id}.
          {value.job.seedsTotal > value.job.seeds.length &&
            ` Of its ${count(value.job.seedsTotal)} seeds, the first ${count(value.job.seeds.length)} are here.`}
          {JSON.stringify(value.job.spec).includes("(hidden)") && " Its headers are not shown again; give them anew."}
        </Notice>
      )}
      {problem !== null && <Notice kind="bad">{capital(problem)}</Notice>}
      {value === null ? (
        problem === null && <p class="soft">Loading …</p>
      ) : (
        <JobForm fields={value.fields} seeds={value.job?.seeds ?? []} texts={value.job === null ? new Map() : textsOf(value.fields, value.job.spec)} />
      )}
    </>
  );
}
