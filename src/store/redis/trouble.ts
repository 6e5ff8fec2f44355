/** What a server's failures are called: which of them pass, which are refusals, and what somebody can do. Words only: connect.ts decides what comes of them. */

/** The server takes no writes. */
export const NO_ROOM = /^(OOM|MISCONF|NOREPLICAS)\b/;
/** The same, and replicas, which never take any: what only reads is answered all the while. */
export const NO_WRITES = /^(OOM|MISCONF|NOREPLICAS|READONLY)\b/;
/** The server says no for now: it has no room, starts, has too many clients, or is no master (any more). */
export const PASSING = /^(?:(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS|UNBLOCKED)\b|ERR max number of clients)/;
export const REFUSED = /^(NOAUTH|WRONGPASS|NOPERM|DENIED|ERR AUTH|ERR invalid password|ERR Client sent AUTH)/;
/** Nobody is there to be asked who he is. */
export const NOBODY = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH/;
/** The client could not read what came. */
export const GIBBERISH = /^what answers there is not Redis/;

/** Another spelling of the URL helps; a missing rule it does not. */
const WHERE_LOGINS_STAND = "(they stand in the store's URL: redis://USER:PASSWORD@HOST, or :PASSWORD@ without a user; SKEIN_STORE keeps it out of sight)";
/** Up to 6.2 what a command says within a script comes with the script's own words before it. */
const WITHIN_SCRIPT = /^ERR Error running script .*?: -?(?=(?:OOM|MISCONF|NOREPLICAS|READONLY|NOPERM) )/;
/** Redis 7.0 says so of a command within a script, where others say NOPERM. */
const NOPERM_IN_SCRIPT = /^ERR The user executing the script (.*)$/s;
/** Where in the script. */
const PLACE_IN_SCRIPT = /\s*script: [0-9a-f]{40}, on @user_script:\d+\.\s*$/;
const MUCH = 300;

export const isReply = (error: unknown): error is Error => error instanceof Error && error.name === "ReplyError";

/** What the client library says of a connection in words of its own is said in ours. */
export function troubleOf(message: string): string {
  const type = /^(?:Unknown RESP type|Protocol error).*?"(.)/s.exec(message)?.[1];
  if (type !== undefined) return /[!-~]/.test(type) ? `what answers there is not Redis (it began with "${type}")` : "what answers there is not Redis";
  const sentinels = /^All sentinels are unreachable.*?(?:Last error: (.*))?$/s.exec(message);
  if (sentinels !== null) return sentinels[1] === undefined ? "no Sentinel names a master" : `no Sentinel names a master: ${troubleOf(sentinels[1])}`;
  return message.length > MUCH ? `${message.slice(0, MUCH)}…` : message;
}

export function wordOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return troubleOf(text.replace(WITHIN_SCRIPT, "").replace(PLACE_IN_SCRIPT, "").replace(NOPERM_IN_SCRIPT, "NOPERM this user $1"));
}

/** Of a word that REFUSED knows: which login is meant, and what it lacks. `tag`: what all keys begin with, `{skein}`. */
export function refusalWords(word: string, { tag, username }: { readonly tag: string; readonly username: string | null }): string {
  if (word.startsWith("DENIED")) return `lets nobody in: ${word}`;
  if (!word.startsWith("NOPERM")) return `refused the login: ${word} ${WHERE_LOGINS_STAND}`;
  const who = username === null ? "the default user" : `the user ${username}`;
  const needs = /channel/i.test(word) ? `the channels &${tag}:*` : /\bkeys?\b/i.test(word) ? `the keys ~${tag} and ~${tag}:*` : "that command";
  return (
    `refused a call: ${word}. The prefix in use is ${tag.slice(1, -1)} (?prefix=NAME in the store's URL changes it), and ${who} needs ${needs}; ` +
    'docs/operations.md, "Security", has the whole ACL rule'
  );
}

/** Of a replica, by somebody who is to write there. `master`: its address as the replica has it; null: it does not say. */
export function replicaWords(master: string | null): string {
  const which = master === null ? "is a read-only replica" : `is a read-only replica of ${master}`;
  const name = master === null ? "its master, redis://HOST:PORT" : `its master, redis://${master}`;
  return `${which} and takes no writes: name ${name}, or the Sentinels that know it, redis+sentinel://HOST:26379,HOST/NAME, with --store (or SKEIN_STORE)`;
}

const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^no Sentinel/, "check the addresses of the Sentinels, and the name of the master behind them: redis+sentinel://HOST:26379,HOST/NAME"],
  [/ECONNREFUSED/, "nothing listens there: start Redis"],
  [/ENOTFOUND|EAI_AGAIN/, "there is no such host name: check the address"],
  [/certificate has expired|CERT_HAS_EXPIRED/i, "give the server a new certificate"],
  [/does not match certificate|altnames/i, "use a name that stands in the server's certificate"],
  [/certificate required|handshake failure/i, "the server wants a certificate of its clients, and none is offered: set tls-auth-clients no there"],
  [/certificate|self.signed/i, "name the authority that signed it to Node.js: NODE_EXTRA_CA_CERTS=/path/ca.pem"],
  [/^LOADING/, "it still reads its data: wait, and try again"],
  [/^OOM/, "it is full: raise maxmemory"],
  [/^MISCONF/, "it cannot save: make room on its disk, and see its log"],
  [/^(?:READONLY|MASTERDOWN)/, "it is a replica: name the master, or the Sentinels that know it"],
  [/^NOREPLICAS/, "it waits for its replicas (min-replicas-to-write)"],
  [/^ERR max number of clients/, "raise maxclients there"],
  [/^BUSY/, "a script of somebody else runs there: wait, and try again"],
  [GIBBERISH, "check host and port"],
];
const USUAL_ADVICE = "check the address, and what stands between: firewall, network, a server that hangs";

/** What to do about a store that did not answer in time; a sentence that names the option. */
export function adviceFor(why: string): string {
  const found = ADVICE.find(([pattern]) => pattern.test(why))?.[1] ?? USUAL_ADVICE;
  return `${found.charAt(0).toUpperCase()}${found.slice(1)}; or name another store with --store (or SKEIN_STORE)`;
}
