// Stylesheets are bundled by the build; a module has nothing of them.
declare module "*.css";
