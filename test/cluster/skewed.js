// Loaded before a worker (`node --import`): its clocks are wrong by SKEIN_TEST_SKEW_MS, and what it sends is noted in SKEIN_TEST_SENT by the machine's own
// monotonic clock, which is the same for all processes: `time ns`, `address`, `method and target`, a line each, written at once so that a kill loses nothing.
import { appendFileSync } from "node:fs";
import { Socket } from "node:net";

const skew = Number(process.env.SKEIN_TEST_SKEW_MS ?? "0");
const log = process.env.SKEIN_TEST_SENT ?? "";

const epoch = Date.now;
Date.now = () => epoch() + skew;
const monotonic = performance.now.bind(performance);
// Never negative: that is what it means that nothing has begun.
performance.now = () => monotonic() + Math.abs(skew);

const write = Socket.prototype.write;
Socket.prototype.write = function noted(data, ...rest) {
  const head = typeof data === "string" ? data : Buffer.isBuffer(data) ? data.toString("latin1", 0, 200) : "";
  const line = /^(GET \S+) HTTP\/1\.1\r\n/.exec(head);
  if (line !== null) appendFileSync(log, `${process.hrtime.bigint()} ${this.remoteAddress} ${line[1]}\n`);
  return write.call(this, data, ...rest);
};
