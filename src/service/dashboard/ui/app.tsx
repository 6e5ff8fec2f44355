/** The frame of every page: skip link, header, banner when the service is away, prompt for the token, what a screen reader is told. */
import { useEffect, useRef, useState } from "preact/hooks";
import { reachable, tokenPrompt } from "./api.ts";
import { JobPage } from "./job.tsx";
import { JobsPage } from "./jobs.tsx";
import { NewJobPage } from "./new-job.tsx";
import { Confirmation, Modal } from "./parts.tsx";
import { type Place, usePlace } from "./router.ts";
import { announcement, useStore } from "./store.ts";

function pageOf({ steps, query }: Place) {
  const [first = "jobs", second, tab = "overview"] = steps;
  if (first === "new") return { key: "new", title: "New job", page: <NewJobPage key="new" from={query.get("from")} /> };
  if (first === "jobs" && second === undefined)
    return { key: "jobs", title: "Jobs", page: <JobsPage state={query.get("state")} cursor={query.get("cursor")} /> };
  if (first === "jobs" && second !== undefined && /^\d{1,15}$/.test(second))
    return { key: second, title: `Job ${second}`, page: <JobPage key={second} id={Number(second)} tab={tab} query={query} /> };
  return { key: "none", title: "Not found", page: <NoPage /> };
}

function NoPage() {
  return (
    <>
      <h1 tabIndex={-1}>Not found</h1>
      <p>
        There is no such page. <a href="#/">All jobs</a>
      </p>
    </>
  );
}

function TokenPrompt() {
  const prompt = useStore(tokenPrompt);
  const [token, setToken] = useState("");
  if (prompt === null) return null;
  return (
    <Modal title="This service asks for a token" onClose={null}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const given = token.trim();
          setToken("");
          if (given !== "") prompt.give(given);
        }}
      >
        <p>It is the one that was given to “skein serve --token”. It is kept until this tab is closed.</p>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          required
          value={token}
          aria-describedby={prompt.refused ? "token-problem" : undefined}
          aria-invalid={prompt.refused}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <p id="token-problem" class="problem" role="alert">
          {prompt.refused ? "The service did not accept this token." : ""}
        </p>
        <div class="actions">
          <button type="submit" class="primary">
            Continue
          </button>
        </div>
      </form>
    </Modal>
  );
}

export function App() {
  const place = usePlace();
  const { key, title, page } = pageOf(place);
  const connected = useStore(reachable);
  const said = useStore(announcement);
  const main = useRef<HTMLElement>(null);
  const shown = useRef(key);
  useEffect(() => {
    document.title = `${title} · Skein`;
    // Another page, not the first: the keyboard and the screen reader go on at its heading.
    if (shown.current !== key) main.current?.querySelector("h1")?.focus();
    shown.current = key;
  }, [key, title]);
  const current = (name: string) => (key === name ? { "aria-current": "page" as const } : {});
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <div class="inner">
          <a class="brand" href="#/">
            Skein
          </a>
          <nav aria-label="Main">
            <a href="#/" {...current("jobs")}>
              Jobs
            </a>
            <a href="#/new" {...current("new")}>
              New job
            </a>
          </nav>
        </div>
      </header>
      <div class="banner" role="status">
        {connected ? "" : "No connection to the service. What you see may be old; it is being tried again."}
      </div>
      <main id="main" class="inner" tabIndex={-1} ref={main}>
        {page}
      </main>
      <div class="hidden" role="status" aria-live="polite">
        {said}
      </div>
      <Confirmation />
      <TokenPrompt />
    </>
  );
}
