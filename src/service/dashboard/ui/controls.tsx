/** What can be done with a job: hold it, end it, start it again with its options, delete it. */
import { useState } from "preact/hooks";
import { pauseJob, removeJob, resumeJob, stopJob } from "./api.ts";
import { count } from "./format.ts";
import { confirmed, Modal, Notice, useAction } from "./parts.tsx";
import { go, hrefOf } from "./router.ts";
import { announce } from "./store.ts";
import { isEnded, type Job } from "./types.ts";

const MODES = [
  ["flight", "Finish what is in flight", "Requests that are under way are finished, nothing new starts."],
  ["queue", "Finish the queue", "What is queued is done, no new links are taken."],
  ["now", "At once", "What is in flight is aborted."],
] as const;

function StopDialog({ job, close, refresh }: { readonly job: Job; readonly close: () => void; readonly refresh: (job: Job) => void }) {
  const { busy, problem, run } = useAction();
  const [mode, setMode] = useState<string>("flight");
  const [reason, setReason] = useState("");
  return (
    <Modal title={`Stop job ${job.id}`} onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(async () => {
            refresh(await stopJob(job.id, mode, reason.trim()));
            close();
          });
        }}
      >
        <p>What was found stays. A job that was stopped cannot be resumed.</p>
        <fieldset>
          <legend>How</legend>
          {MODES.map(([name, label, text]) => (
            <label key={name} class="choice">
              <input type="radio" name="mode" value={name} checked={mode === name} onChange={() => setMode(name)} />
              <span>
                {label}
                <span class="soft"> {text}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <label for="stop-reason">Reason (optional)</label>
        <input id="stop-reason" type="text" maxLength={500} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={close}>
            Keep it running
          </button>
          <button type="submit" class="danger" aria-disabled={busy}>
            Stop
          </button>
        </div>
      </form>
    </Modal>
  );
}

export function Controls({ job, refresh }: { readonly job: Job; readonly refresh: (job: Job) => void }) {
  const { id, state } = job;
  const { busy, problem, run } = useAction();
  const [stopping, setStopping] = useState(false);
  const ended = isEnded(state);

  async function remove(): Promise<void> {
    const sure = await confirmed(
      ended
        ? {
            title: `Delete job ${id}?`,
            text: `Its ${count(job.counts.pages)} pages and all other records go with it. This cannot be undone.`,
            action: "Delete",
          }
        : { title: `Cancel job ${id}?`, text: "What is in flight is aborted. What was found so far stays.", action: "Cancel the job" },
    );
    if (!sure) return;
    await removeJob(id);
    if (!ended) return;
    announce(`Job ${id} was deleted`);
    go("#/");
  }

  return (
    <div class="controls">
      {/* One button in one place: who pauses by keyboard resumes with the same key. */}
      {(state === "running" || state === "queued" || state === "paused") && (
        <button
          key="hold"
          type="button"
          aria-disabled={busy}
          onClick={() => run(async () => refresh(await (state === "paused" ? resumeJob(id) : pauseJob(id))))}
        >
          {state === "paused" ? "Resume" : "Pause"}
        </button>
      )}
      {!ended && (
        <button key="stop" type="button" onClick={() => setStopping(true)}>
          {state === "stopping" ? "Stop faster …" : "Stop …"}
        </button>
      )}
      {ended && (
        <a key="again" class="button" href={hrefOf("new", { from: String(id) })}>
          Run again …
        </a>
      )}
      <button key="remove" type="button" class="danger" aria-disabled={busy} onClick={() => run(remove)}>
        {ended ? "Delete …" : "Cancel …"}
      </button>
      {problem !== null && (
        <div role="alert">
          <Notice kind="bad">{problem}</Notice>
        </div>
      )}
      {stopping && <StopDialog job={job} close={() => setStopping(false)} refresh={refresh} />}
    </div>
  );
}
