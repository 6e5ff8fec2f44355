/** The options a job runs with, its seeds, and adding more of them. */
import { useState } from "preact/hooks";
import { addUrls } from "./api.ts";
import { count } from "./format.ts";
import { Address, TableBox, useAction } from "./parts.tsx";
import { announce } from "./store.ts";
import { isEnded, type Job } from "./types.ts";

function More({ job }: { readonly job: Job }) {
  const [lines, setLines] = useState("");
  const [said, setSaid] = useState("");
  const { busy, problem, run } = useAction();
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        run(async () => {
          const { added, known, rejected } = await addUrls(job.id, lines);
          const left = rejected?.length ?? 0;
          setSaid(`${count(added)} added, ${count(known)} known before${left === 0 ? "" : `, ${count(left)} no URL`}.`);
          setLines("");
          announce("Seeds were added");
        });
      }}
    >
      <h3>
        <label for="more-seeds">More seeds, one a line</label>
      </h3>
      <textarea id="more-seeds" rows={3} spellcheck={false} required value={lines} onInput={(event) => setLines(event.currentTarget.value)} />
      <p role="status" class={problem === null ? "soft" : "problem"}>
        {problem ?? said}
      </p>
      <div class="actions">
        <button type="submit" aria-disabled={busy}>
          Add
        </button>
      </div>
    </form>
  );
}

export function OptionsTab({ job }: { readonly job: Job }) {
  const { seeds, seedsTotal, spec } = job;
  return (
    <div class="pair">
      <div>
        <section class="card">
          <h2>Seeds</h2>
          <ol class="seeds">
            {[...new Set(seeds.slice(0, 100))].map((seed) => (
              <li key={seed}>
                <Address url={seed} />
              </li>
            ))}
          </ol>
          {seedsTotal > Math.min(100, seeds.length) && <p class="soft">and {count(seedsTotal - Math.min(100, seeds.length))} more</p>}
        </section>
        {!isEnded(job.state) && <More job={job} />}
      </div>
      <section class="card">
        <h2>Options in full</h2>
        <TableBox label="Options as JSON">
          <pre>{JSON.stringify(spec, null, 2)}</pre>
        </TableBox>
      </section>
    </div>
  );
}
