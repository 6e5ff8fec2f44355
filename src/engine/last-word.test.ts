/** Words to somebody who is slow to answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLastWord } from "./last-word.ts";

/** Whoever listens answers when the test says so. */
function slow() {
  let wish = "";
  const heard: string[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const tell = createLastWord(() => {
    heard.push(wish);
    const answer = Promise.withResolvers<void>();
    answers.push(answer);
    return answer.promise;
  });
  return {
    heard,
    answers,
    say(word: string) {
      wish = word;
      return tell();
    },
  };
}

test("a word is said at once, and the next one only when that has been answered", async () => {
  const { heard, answers, say } = slow();
  const first = say("pause");
  const second = say("run");
  assert.deepEqual(heard, ["pause"]);
  answers[0]?.resolve();
  await first;
  await Promise.resolve();
  assert.deepEqual(heard, ["pause", "run"]);
  answers[1]?.resolve();
  await second;
});

test("what has not been said yet makes way for what came after it", async () => {
  const { heard, answers, say } = slow();
  const all = ["pause", "run", "pause", "run"].map(say);
  answers[0]?.resolve();
  await all[0];
  await Promise.resolve();
  answers[1]?.resolve();
  await Promise.all(all);
  assert.deepEqual(heard, ["pause", "run"]);
});

test("a word that comes to nothing is told to who said it, and keeps nobody from the next one", async () => {
  const { heard, answers, say } = slow();
  const first = say("pause");
  const second = say("run");
  answers[0]?.reject(new Error("no room"));
  await assert.rejects(first, /no room/);
  answers[1]?.resolve();
  await second;
  assert.deepEqual(heard, ["pause", "run"]);
});
