/** Why the job did or did not fetch a URL. */
import { useEffect, useState } from "preact/hooks";
import { explain } from "./api.ts";
import { useAction } from "./parts.tsx";
import type { Job } from "./types.ts";

export function ExplainTab({ job, asked }: { readonly job: Job; readonly asked: string | null }) {
  const [url, setUrl] = useState(asked ?? "");
  const [found, setFound] = useState<{ readonly url: string; readonly lines: readonly string[] } | null>(null);
  const { busy, problem, run } = useAction();
  const look = (wanted: string) => run(async () => setFound(await explain(job.id, wanted, AbortSignal.timeout(30_000))));
  useEffect(() => {
    if (asked === null) return;
    setUrl(asked);
    look(asked);
  }, [asked]);
  return (
    <>
      <h2>Explain a URL</h2>
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          if (url.trim() !== "") look(url.trim());
        }}
      >
        <label for="explain-url">URL, in any spelling</label>
        <div class="line">
          <input
            id="explain-url"
            type="text"
            inputMode="url"
            spellcheck={false}
            autocomplete="off"
            required
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
          <button type="submit" class="primary" aria-disabled={busy}>
            Explain
          </button>
        </div>
      </form>
      <div role="status">
        {problem !== null && <p class="problem">{problem}</p>}
        {found !== null && problem === null && (
          <div class="card explained">
            <h3 class="address wrapped">{found.url}</h3>
            <pre>{found.lines.join("\n")}</pre>
          </div>
        )}
      </div>
    </>
  );
}
