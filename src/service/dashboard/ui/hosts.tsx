/** The hosts of a job: what waits there, how fast they are asked, and holding or slowing one of them while the job runs. */
import { useRef, useState } from "preact/hooks";
import { getHosts, patchHost } from "./api.ts";
import { capital, count, duration, rate } from "./format.ts";
import { Modal, Notice, TableBox, useAction } from "./parts.tsx";
import { usePoll } from "./store.ts";
import { type Host, isEnded, type Job } from "./types.ts";

const FEW = 25;
const MANY = 1_000;
const EVERY_MS = 2_000;

/** Starts of pages a second at each host, between two looks. */
function useRates(hosts: readonly Host[] | null): ReadonlyMap<string, number> {
  const box = useRef<{ hosts: readonly Host[] | null; at: number; rates: ReadonlyMap<string, number> }>({ hosts: null, at: 0, rates: new Map() });
  if (hosts !== null && hosts !== box.current.hosts) {
    const now = performance.now();
    const before = new Map(box.current.hosts?.map(({ host, settled }) => [host, settled]));
    const seconds = (now - box.current.at) / 1_000;
    const rates = new Map(
      hosts.flatMap(({ host, settled }) => (before.has(host) ? [[host, Math.max(0, settled - (before.get(host) ?? 0)) / seconds] as const] : [])),
    );
    box.current = { hosts, at: now, rates };
  }
  return box.current.rates;
}

function PaceDialog({ job, host, close }: { readonly job: Job; readonly host: Host; readonly close: () => void }) {
  const { busy, problem, run } = useAction();
  const [delay, setDelay] = useState(host.delayMs === 0 ? "0" : `${host.delayMs}ms`);
  const [most, setMost] = useState(String(host.concurrency));
  const patch = (value: Readonly<Record<string, unknown>>) =>
    run(async () => {
      await patchHost(job.id, host.host, value);
      close();
    });
  return (
    <Modal title={`Pace of ${host.host}`} onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          patch({ delay: delay.trim(), concurrency: Number(most) });
        }}
      >
        <label for="pace-delay">Least gap between request starts</label>
        <p class="soft" id="pace-hint">
          Such as 250ms, 2s or 1m. A longer Crawl-delay of its robots.txt still holds.
        </p>
        <input id="pace-delay" type="text" required aria-describedby="pace-hint" value={delay} onInput={(event) => setDelay(event.currentTarget.value)} />
        <label for="pace-most">Most requests in flight</label>
        <input id="pace-most" type="number" min={1} max={1000} required value={most} onInput={(event) => setMost(event.currentTarget.value)} />
        <p class="problem" role="alert">
          {problem ?? ""}
        </p>
        <div class="actions">
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button type="button" aria-disabled={busy} onClick={() => patch({ delay: null, concurrency: null })}>
            As the job says
          </button>
          <button type="submit" class="primary" aria-disabled={busy}>
            Set
          </button>
        </div>
      </form>
    </Modal>
  );
}

interface RowProps {
  readonly job: Job;
  readonly host: Host;
  readonly speed: number | null;
  readonly act: ReturnType<typeof useAction>;
  readonly reload: () => void;
  readonly edit: (host: Host) => void;
}

function Row({ job, host, speed, act, reload, edit }: RowProps) {
  const hold = () =>
    act.run(async () => {
      await patchHost(job.id, host.host, { paused: !host.paused });
      reload();
    });
  return (
    <tr>
      <th scope="row">
        <span class="address" title={host.host}>
          {host.host}
        </span>
        {host.paused && <span class="state state-paused">Paused</span>}
      </th>
      <td class="figure">{count(host.queued)}</td>
      <td class="figure">
        {count(host.inFlight)}
        <span class="soft"> / {count(host.concurrency)}</span>
      </td>
      <td class="figure">{count(host.settled)}</td>
      <td class="figure">{speed === null ? "–" : rate(speed)}</td>
      <td class="figure">{host.delayMs === 0 ? "none" : duration(host.delayMs)}</td>
      <td class="figure">{host.paused ? "–" : host.dueInMs < 1 ? "due" : `in ${duration(host.dueInMs)}`}</td>
      <td class="figure">{host.meanLatencyMs > 0 ? duration(host.meanLatencyMs) : "–"}</td>
      {!isEnded(job.state) && (
        <td class="buttons">
          <button type="button" class="small" onClick={hold} aria-label={`${host.paused ? "Resume" : "Pause"} ${host.host}`}>
            {host.paused ? "Resume" : "Pause"}
          </button>
          <button type="button" class="small" onClick={() => edit(host)} aria-label={`Pace of ${host.host}`}>
            Pace …
          </button>
        </td>
      )}
    </tr>
  );
}

export function HostsTab({ job }: { readonly job: Job }) {
  const [limit, setLimit] = useState(FEW);
  const [edited, setEdited] = useState<Host | null>(null);
  const ended = isEnded(job.state);
  const { value, problem, reload } = usePoll(`${job.id} ${limit} ${ended}`, ended ? null : EVERY_MS, (signal) => getHosts(job.id, limit, signal));
  const rates = useRates(value);
  const act = useAction();
  const hosts = value ?? [];
  return (
    <>
      <h2 class="hidden">Hosts</h2>
      {problem !== null && <Notice kind="bad">{capital(problem)}</Notice>}
      {act.problem !== null && (
        <div role="alert">
          <Notice kind="bad">{act.problem}</Notice>
        </div>
      )}
      {value !== null && hosts.length === 0 && <p class="empty">{ended ? "Of a job that has ended no hosts are kept." : "No host is known yet."}</p>}
      {hosts.length > 0 && (
        <TableBox label="Hosts">
          <table class="hosts">
            <thead>
              <tr>
                <th scope="col">Host</th>
                {["Queue", "In flight", "Settled", "Rate", "Delay", "Next start", "Latency"].map((name) => (
                  <th key={name} scope="col" class="figure">
                    {name}
                  </th>
                ))}
                {!ended && (
                  <th scope="col">
                    <span class="hidden">Actions</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {hosts.map((host) => (
                <Row key={host.host} job={job} host={host} speed={ended ? null : (rates.get(host.host) ?? null)} act={act} reload={reload} edit={setEdited} />
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
      {hosts.length >= limit && limit === FEW && (
        <div class="pager">
          <button type="button" onClick={() => setLimit(MANY)}>
            Show up to {count(MANY)}
          </button>
        </div>
      )}
      {hosts.length >= MANY && <p class="soft">These are {count(MANY)} of them; there are more.</p>}
      {edited !== null && (
        <PaceDialog
          job={job}
          host={edited}
          close={() => {
            setEdited(null);
            reload();
          }}
        />
      )}
    </>
  );
}
