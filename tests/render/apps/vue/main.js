import { createApp } from "vue";
import { createRouter, createWebHistory } from "vue-router";
import App from "./App.vue";
import Home from "./Home.vue";

const router = createRouter({
  history: createWebHistory(),
  routes: [
    { path: "/", component: Home },
    { path: "/:section", component: () => import("./Section.vue") }, // chunks of their own
    { path: "/:section/:id", component: () => import("./Item.vue") },
  ],
});
createApp(App).use(router).mount("#app");
