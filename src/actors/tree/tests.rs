use super::*;

fn actor(path: &str) -> ActorView {
    ActorView {
        path: path.to_owned(),
        kind: Kind::Launcher,
        activity: Activity::Ok,
        uptime: Duration::ZERO,
        restarts: 0,
        mailbox: 0,
        last_handled: Duration::ZERO,
        text: String::new(),
    }
}

#[test]
fn columns_go_on_as_long_as_a_later_actor_hangs_on_them() {
    let actors =
        ["n1", "n1/session", "n1/t1.0", "n1/t1.0/executor", "n1/t1.0/renewer", "n1/t2.0", "n1/t2.0/executor"];
    let actors: Vec<ActorView> = actors.into_iter().map(actor).collect();
    let drawn: Vec<String> =
        actors.iter().enumerate().map(|(at, actor)| branches(&actor.path, &actors[at + 1..])).collect();
    assert_eq!(drawn, ["", "├─ ", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "   └─ "]);
}
