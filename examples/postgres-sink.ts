/**
 * Items into PostgreSQL, each once, over kills and retries: rows and checkpoint are stored in one transaction. With DATABASE_URL and the package `pg` installed it writes there;
 * without, it prints what it would send. Usage: node examples/postgres-sink.ts [URL]
 */
import { type BatchSink, crawl } from "skein";

/** A client or a pool of one connection; that of `pg` fits. */
interface Client {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly { readonly checkpoint?: string }[] }>;
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS item (type text NOT NULL, key text, item jsonb NOT NULL, url text, fetched_at timestamptz, UNIQUE (type, key));
  CREATE TABLE IF NOT EXISTS skein_checkpoint (sink text PRIMARY KEY, checkpoint text NOT NULL)`;

/** Of one key the last of the batch counts: a statement may not touch a row twice. */
const UPSERT = `
  INSERT INTO item (type, key, item, url, fetched_at)
  SELECT DISTINCT ON (type, key, CASE WHEN key IS NULL THEN n END) type, key, item, url, "fetchedAt"
  FROM (SELECT row_number() OVER () AS n, * FROM jsonb_to_recordset($1::jsonb) AS r (type text, key text, item jsonb, url text, "fetchedAt" timestamptz)) AS given
  ORDER BY type, key, CASE WHEN key IS NULL THEN n END, n DESC
  ON CONFLICT (type, key) DO UPDATE SET item = excluded.item, url = excluded.url, fetched_at = excluded.fetched_at`;

const REMEMBER = "INSERT INTO skein_checkpoint VALUES ($1, $2) ON CONFLICT (sink) DO UPDATE SET checkpoint = excluded.checkpoint";

/** PostgreSQL takes no NUL and no half of a surrogate pair in its texts. */
function jsonFor(records: readonly object[]): string {
  return JSON.stringify(records).replace(/(\\\\)|\\u(?:0000|d[89a-f][0-9a-f]{2})/g, (_, backslash: string | undefined) => backslash ?? "\ufffd");
}

export function postgresSink(client: Client, name = "postgres"): BatchSink {
  return {
    name,
    takes: "items",
    batchSize: 1_000,
    async open() {
      await client.query(TABLES);
      const { rows } = await client.query("SELECT checkpoint FROM skein_checkpoint WHERE sink = $1", [name]);
      return rows[0]?.checkpoint ?? null;
    },
    async write(records, checkpoint) {
      await client.query("BEGIN");
      try {
        await client.query(UPSERT, [jsonFor(records)]);
        await client.query(REMEMBER, [name, checkpoint]);
        await client.query("COMMIT");
      } catch (error) {
        await client.query("ROLLBACK").catch(() => undefined); // the connection may be gone: then nothing is left to roll back
        throw error;
      }
    },
  };
}

async function connect(url: string): Promise<Client & { end(): Promise<void> }> {
  const pg = "pg"; // not a dependency of this example unless it is asked for
  const { default: driver } = await import(pg);
  const client = new driver.Client(url);
  await client.connect();
  return client;
}

/** Prints in place of sending. */
const printer: Client = {
  async query(text, values = []) {
    const given = values.map((value) => String(value).replace(/(.{70}).+/, "$1…"));
    console.log([text.trim().split("\n")[0]?.trim().slice(0, 60), ...given].join(" | "));
    return { rows: [] };
  },
};

if (import.meta.main) {
  const [start = "https://example.com/"] = process.argv.slice(2);
  const client = process.env.DATABASE_URL === undefined ? null : await connect(process.env.DATABASE_URL);
  const run = crawl({ seeds: [start], extract: { title: "title", heading: "h1" } }, { sinks: [postgresSink(client ?? printer)] });
  const summary = await run.done;
  console.log(`${summary.pages} pages, ended: ${summary.finishReason}`);
  await client?.end();
}
