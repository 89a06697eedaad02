import { Component, provideZonelessChangeDetection } from "@angular/core";
import { bootstrapApplication } from "@angular/platform-browser";
import { provideRouter, RouterLink, RouterOutlet, withComponentInputBinding } from "@angular/router";
import { sections } from "../shared.js";

@Component({
  imports: [RouterLink],
  template: `<ul>@for (name of sections; track name) {<li><a [routerLink]="'/' + name">{{ name }}</a></li>}</ul>`,
})
class Home {
  sections = sections;
  constructor() { document.title = "Drinks"; }
}

@Component({ selector: "app-root", imports: [RouterOutlet], template: "<router-outlet />" })
class App {}

bootstrapApplication(App, {
  providers: [
    provideZonelessChangeDetection(),
    provideRouter([
      { path: "", component: Home },
      { path: ":section", loadComponent: () => import("./section").then((file) => file.Section) }, // chunks of their own
      { path: ":section/:id", loadComponent: () => import("./item").then((file) => file.Item) },
    ], withComponentInputBinding()),
  ],
});
