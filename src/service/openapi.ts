/** The OpenAPI 3.1 document, from the route table and the one schema of options. */
import { VERSION } from "../version.ts";
import { type Answer, COMMON_ANSWERS, ROUTES, type Route, STRAY_ANSWERS } from "./routes.ts";
import { componentSchemas, type Schema } from "./schemas.ts";

const contentOf = (content: Readonly<Record<string, Schema>>) => Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema }]));

function answer({ description, content, headers }: Answer): object {
  return {
    description,
    ...(headers === undefined
      ? {}
      : { headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, { description: text, schema: { type: "string" } }])) }),
    ...(content === undefined ? {} : { content: contentOf(content) }),
  };
}

/** All answers of a route, the common ones too. */
export function answersOf(route: Route): Readonly<Record<number, Answer>> {
  const common = Object.entries(COMMON_ANSWERS).filter(([status]) => !(status === "401" && route.open) && !(status === "400" && route.anyQuery));
  return { ...Object.fromEntries(common), ...route.answers };
}

/** What comes where no route is asked for, by name: OpenAPI has no place for it but among the components. */
const strayResponses = () =>
  Object.fromEntries(Object.entries(STRAY_ANSWERS).map(([status, { name, ...rest }]) => [name, { "x-status": Number(status), ...answer(rest) }]));

function operation(route: Route): object {
  const id = route.path.includes("{id}")
    ? [{ name: "id", in: "path", required: true, description: "The job's number.", schema: { type: "integer", minimum: 0 } }]
    : [];
  const parameters = [...id, ...(route.parameters ?? []).map((parameter) => ({ required: false, ...parameter }))];
  return {
    operationId: route.operation,
    tags: [route.group],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: { required: route.body.required, content: contentOf(route.body.content) } }),
    responses: Object.fromEntries(Object.entries(answersOf(route)).map(([status, each]) => [status, answer(each)])),
    security: route.open ? [] : [{ token: [] }, {}],
  };
}

export function openapiDocument(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route);
  return {
    openapi: "3.1.0",
    info: {
      title: "Skein",
      version: VERSION,
      description:
        "Crawls as jobs over HTTP. Errors are problem details (RFC 9457); the token is asked for only where one is set. HEAD is answered wherever GET is; OPTIONS gives 204 with Allow. Every path answers any other method with 405 and Allow (components.responses.MethodNotAllowed).",
    },
    paths,
    components: { schemas: componentSchemas(), responses: strayResponses(), securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  };
}
