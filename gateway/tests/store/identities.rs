//! Who is known, as every store keeps it.

use reach_core::identity::{Join, OperatorRow};
use reach_gateway::store::{Command, IdentityRow, Outcome, Store};
use reach_schemas::Role;

use crate::contract::every_store;
use crate::make::{at, tell, tell_all};

every_store! {
    who_is_known_is_kept_and_replaced_by_kind_and_name
    of_two_who_take_the_same_one_gets_it
}

fn operator(name: &str, role: Role) -> IdentityRow {
    let row = OperatorRow { hash: "h".to_owned(), name: name.parse().unwrap(), role, made_at: at(1), expires_at: None };
    IdentityRow::Operator(row)
}

fn join(hash: &str) -> IdentityRow {
    let row = Join { hash: hash.to_owned(), agents: "*@n".parse().unwrap(), made_at: at(1), expires_at: at(2) };
    IdentityRow::Join(row)
}

async fn who_is_known_is_kept_and_replaced_by_kind_and_name(store: &dyn Store) {
    // A name of one kind is none of another.
    let rows = [operator("b", Role::Viewer), operator("a", Role::Viewer), join("b")];
    tell_all(store, rows.into_iter().map(Command::PutIdentity).collect()).await;
    assert_eq!(tell(store, Command::PutIdentity(operator("b", Role::Admin))).await, Outcome::Done);
    let expected = vec![join("b"), operator("a", Role::Viewer), operator("b", Role::Admin)];
    assert_eq!(store.identities().await.unwrap(), expected);
}

async fn of_two_who_take_the_same_one_gets_it(store: &dyn Store) {
    tell(store, Command::PutIdentity(join("x"))).await;
    let taken = tell_all(store, vec![Command::TakeIdentity(join("x")), Command::TakeIdentity(join("x"))]).await;
    assert_eq!(taken, [Outcome::Done, Outcome::Conflict { current: None }]);
    assert_eq!(store.identities().await.unwrap(), []);
}
