/** A figure over time as an area: one value, no axis but its highest point and the span, and the same in words. */
import { useId } from "preact/hooks";
import { brief, duration } from "./format.ts";
import type { Sample } from "./live.ts";

interface ChartProps {
  readonly title: string;
  readonly samples: readonly Sample[];
  readonly pick: (sample: Sample) => number;
  readonly show: (value: number) => string;
}

const WIDTH = 600;
const HEIGHT = 120;

/** 1, 2 or 5 times a power of ten: the highest line does not tremble with the figures. */
function ceiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

export function Chart({ title, samples, pick, show }: ChartProps) {
  const id = useId();
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined || samples.length < 2)
    return (
      <section class="card chart" aria-labelledby={id}>
        <h3 id={id}>{title}</h3>
        <p class="soft">Nothing is measured yet.</p>
      </section>
    );
  const most = samples.reduce((top, sample) => Math.max(top, pick(sample)), 0);
  const top = ceiling(most);
  const span = last.atMs - first.atMs || 1;
  const points = samples.map((sample) => `${(((sample.atMs - first.atMs) / span) * WIDTH).toFixed(1)} ${(HEIGHT - (pick(sample) / top) * HEIGHT).toFixed(1)}`);
  const now = show(pick(last));
  return (
    <section class="card chart" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      <div class="plot">
        <span class="top soft" aria-hidden="true">
          {brief(top)}
        </span>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title} over ${duration(span)}: highest ${show(most)}, last ${now}.`}
        >
          <path class="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
          <path class="area" d={`M0 ${HEIGHT}L${points.join("L")}L${WIDTH} ${HEIGHT}Z`} />
          <path class="line" d={`M${points.join("L")}`} />
        </svg>
      </div>
      <p class="axis soft" aria-hidden="true">
        <span>{duration(first.atMs)}</span>
        <span>{duration(last.atMs)}</span>
      </p>
    </section>
  );
}
