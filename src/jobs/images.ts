/** The images of a job: distinct absolute http(s) URLs in order of discovery, one JSON string a line, exactly once over kills. A sink like the others. */
import type { Output } from "../core/records.ts";
import type { FingerprintSeed } from "../core/request.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import { createSeenTable } from "../rules/seen.ts";
import { fingerprintOf } from "../rules/url.ts";
import { textFile } from "../sinks/text-file.ts";
import { readSeeds } from "../store/jobs/seeds.ts";

/** Its place among the sinks of a state directory. */
export const IMAGES_SINK = "journal:images";

export interface ImagesSink extends Sink {
  readonly count: number;
}

/** Lines looked at before others have their turn. */
const AT_ONCE = 5_000;

/** `state`: of the last commit; the images before it are read from the file. */
export async function openImages(path: string, state: SinkState | null): Promise<ImagesSink> {
  const words = crypto.getRandomValues(new Int32Array(4));
  const seed: FingerprintSeed = [words[0]!, words[1]!, words[2]!, words[3]!];
  const seen = createSeenTable();
  const isNew = (url: string): boolean => {
    const { idHi, idLo } = fingerprintOf(url, seed);
    return seen.putIfAbsent(idHi, idLo, 0) < 0;
  };
  const bytes = state?.["bytes"];
  if (typeof bytes === "number") {
    let looked = 0;
    for (const line of readSeeds(path, 0, bytes)) {
      isNew(JSON.parse(line));
      if (++looked % AT_ONCE === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
  const file = textFile(path, { gzip: false, form: "images jsonl", state });

  function take(output: Output): void {
    for (const url of output.page?.images ?? []) {
      if (!/^https?:\/\//i.test(url) || !isNew(url)) continue;
      file.lines.text(`${JSON.stringify(url)}\n`);
      file.endRecord();
    }
  }

  return {
    name: IMAGES_SINK,
    get count() {
      return file.records;
    },
    write(outputs) {
      for (const output of outputs) take(output);
      file.settle();
    },
    flush: () => file.flush(),
    checkpoint: (sync) => file.checkpoint(sync),
    close: async () => file.close(() => ""),
  };
}
