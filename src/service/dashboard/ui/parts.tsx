/** Small parts that several pages are made of. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { wordsOf } from "./api.ts";
import { count, moment, STATE_WORDS, webAddress } from "./format.ts";
import { createStore, useStore } from "./store.ts";
import type { JobState } from "./types.ts";

export function State({ state }: { readonly state: JobState }) {
  return <span class={`state state-${state}`}>{STATE_WORDS[state]}</span>;
}

export function Moment({ at }: { readonly at: string | null }) {
  return at === null ? (
    <>–</>
  ) : (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {moment(at)}
    </time>
  );
}

/** An address that was crawled: text, and a link only if it leads to the web. Cut to the room there is; whole in the title. */
export function Address({ url, wrap = false }: { readonly url: string | undefined; readonly wrap?: boolean }) {
  const href = webAddress(url);
  const kind = wrap ? "address wrapped" : "address";
  if (href === null) return <span class={kind}>{url ?? "–"}</span>;
  return (
    <a class={kind} href={href} title={url} target="_blank" rel="noopener noreferrer" referrerpolicy="no-referrer">
      {url}
    </a>
  );
}

export function Notice({ kind = "info", children }: { readonly kind?: "info" | "bad"; readonly children: ComponentChildren }) {
  return <div class={`notice notice-${kind}`}>{children}</div>;
}

/** A table that may be wider than the screen: scrolled in a region of its own, which the keyboard reaches. */
export function TableBox({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  const box = useRef<HTMLElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const { current } = box;
    if (current === null) return;
    const look = () => setScrolls(current.scrollWidth > current.clientWidth + 1);
    const observer = new ResizeObserver(look);
    observer.observe(current);
    if (current.firstElementChild) observer.observe(current.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return (
    <section class="tablebox" aria-label={label} ref={box} {...(scrolls ? { tabIndex: 0 } : {})}>
      {children}
    </section>
  );
}

/** How often each thing occurred, most often first. */
export function Tally({ title, counts, name, empty }: TallyProps) {
  const rows = Object.entries(counts)
    .filter(([, times]) => times > 0)
    .sort(([, a], [, b]) => b - a);
  const most = rows[0]?.[1] ?? 0;
  const id = useId();
  return (
    <section class="card" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {rows.length === 0 ? (
        <p class="soft">{empty}</p>
      ) : (
        <table class="tally">
          <thead class="hidden">
            <tr>
              <th scope="col">{name}</th>
              <th scope="col">Count</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([word, times]) => (
              <tr key={word}>
                <th scope="row">{word}</th>
                <td>
                  <span class="bar" aria-hidden="true" style={{ inlineSize: `${Math.max(1, (times / most) * 100)}%` }} />
                  <span class="figure">{count(times)}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

interface TallyProps {
  readonly title: string;
  readonly counts: Readonly<Record<string, number>>;
  /** Heading of the first column. */
  readonly name: string;
  readonly empty: string;
}

/** A dialog over the page. Escape closes it; focus goes back to where it was. */
export function Modal({ title, onClose, children }: { readonly title: string; readonly onClose: (() => void) | null; readonly children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const shown = useRef(false);
  useEffect(() => {
    const { current } = dialog;
    const before = document.activeElement;
    current?.showModal();
    shown.current = true;
    return () => {
      shown.current = false;
      current?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClose={() => {
        // Browsers close it in the end, whatever a handler says: one that must be answered comes back.
        if (shown.current && onClose === null) dialog.current?.showModal();
        else if (shown.current) onClose?.();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface Question {
  readonly title: string;
  readonly text: string;
  readonly action: string;
  answer(yes: boolean): void;
}
const question = createStore<Question | null>(null);

/** Asks before something that cannot be taken back. */
export function confirmed(asked: Omit<Question, "answer">): Promise<boolean> {
  return new Promise((resolve) => {
    question.set({
      ...asked,
      answer(yes) {
        question.set(null);
        resolve(yes);
      },
    });
  });
}

export function Confirmation() {
  const asked = useStore(question);
  if (asked === null) return null;
  return (
    <Modal title={asked.title} onClose={() => asked.answer(false)}>
      <p>{asked.text}</p>
      <div class="actions">
        <button type="button" onClick={() => asked.answer(false)}>
          Keep it
        </button>
        <button type="button" class="danger" onClick={() => asked.answer(true)}>
          {asked.action}
        </button>
      </div>
    </Modal>
  );
}

/** Runs what a button starts: at most once at a time, with what went wrong. */
export function useAction(): { readonly busy: boolean; readonly problem: string | null; run(work: () => Promise<void>): void } {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  return {
    busy,
    problem,
    run(work) {
      if (busy) return;
      setBusy(true);
      setProblem(null);
      work()
        .catch((error: unknown) => setProblem(wordsOf(error)))
        .finally(() => setBusy(false));
    },
  };
}
