/** GET /metrics: figures of the service in Prometheus' text format 0.0.4. No label has more values than the service has routes, states and statuses. */
import { JOB_STATES, type JobService } from "../core/jobs.ts";

const BUCKETS = [0.005, 0.025, 0.1, 0.5, 2.5, 10];

interface Timing {
  readonly counts: number[];
  count: number;
  seconds: number;
}

export interface Meter {
  /** `route`: the name of a route, never a path. */
  note(route: string, status: number, seconds: number): void;
  text(jobs: JobService, gauges: Readonly<Record<string, number>>): Promise<string>;
}

const snake = (name: string) => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`).replace(/[^a-z0-9_]/g, "_");

function metric(name: string, type: string, help: string, samples: readonly (readonly [string, number])[]): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.map(([labels, value]) => `${name}${labels} ${value}\n`).join("")}`;
}

export function createMeter(): Meter {
  const requests = new Map<string, number>();
  const timings = new Map<string, Timing>();

  function histogram(): string {
    const name = "skein_http_request_duration_seconds";
    const lines = [`# HELP ${name} Time to the head of the answer, by route.\n# TYPE ${name} histogram\n`];
    for (const [route, { counts, count, seconds }] of timings) {
      for (const [index, bound] of BUCKETS.entries()) lines.push(`${name}_bucket{route="${route}",le="${bound}"} ${counts[index] ?? 0}\n`);
      lines.push(`${name}_bucket{route="${route}",le="+Inf"} ${count}\n${name}_sum{route="${route}"} ${seconds}\n${name}_count{route="${route}"} ${count}\n`);
    }
    return lines.join("");
  }

  return {
    note(route, status, seconds) {
      const key = `{route="${route}",status="${status}"}`;
      requests.set(key, (requests.get(key) ?? 0) + 1);
      const timing = timings.get(route) ?? { counts: BUCKETS.map(() => 0), count: 0, seconds: 0 };
      timings.set(route, timing);
      timing.count++;
      timing.seconds += seconds;
      for (const [index, bound] of BUCKETS.entries()) if (seconds <= bound) timing.counts[index] = (timing.counts[index] ?? 0) + 1;
    },
    async text(jobs, gauges) {
      const { ready, jobs: byState, totals } = await jobs.health();
      const memory = process.memoryUsage();
      return [
        metric("skein_ready", "gauge", "1 when jobs are taken and worked on.", [["", ready ? 1 : 0]]),
        metric(
          "skein_jobs",
          "gauge",
          "Jobs by state.",
          JOB_STATES.map((state) => [`{state="${state}"}`, byState[state] ?? 0]),
        ),
        ...Object.entries(totals).map(([name, value]) =>
          metric(`skein_${snake(name)}_total`, "counter", `${name} of all jobs since the start.`, [["", value]]),
        ),
        ...Object.entries(gauges).map(([name, value]) => metric(`skein_${snake(name)}`, "gauge", `${name} now.`, [["", value]])),
        metric("skein_http_requests_total", "counter", "Requests answered, by route and status.", [...requests]),
        histogram(),
        metric("process_resident_memory_bytes", "gauge", "Memory of the process.", [["", memory.rss]]),
        metric("process_cpu_seconds_total", "counter", "User and system time of the process.", [
          ["", process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6],
        ]),
        metric("nodejs_heap_used_bytes", "gauge", "Of the JavaScript heap.", [["", memory.heapUsed]]),
      ].join("");
    },
  };
}
