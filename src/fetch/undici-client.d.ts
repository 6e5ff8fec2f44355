declare module "undici/lib/dispatcher/client.js" {
  import type { Client } from "undici";

  const client: typeof Client;
  export default client;
}
