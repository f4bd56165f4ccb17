//! Launches by address: they are recorded as those by name are, and keep their attributes.

use super::{check, recorded_program_and_output};
use expect_test::expect;

#[test]
fn launches_by_address_are_recorded_and_keep_their_attributes() {
    let (folder, printed) = recorded_program_and_output(include_str!("by_address.cu"));
    expect![[r#"
        _Z8advancediPf grid 2 1 1 block 128 1 1 shared 0
        _Z8advancediPf grid 4 1 1 block 256 1 1 shared 0 with attributes
        _Z8advancediPf grid 8 1 1 block 256 1 1 shared 0 with attributes
    "#]]
    .assert_eq(&printed);
    check(
        folder.path(),
        "advanced",
        expect![[r#"
            1 x grid [2, 1, 1] block [128, 1, 1] shared 0
              Signed 1
              Pointer of 8 bytes
              buffers [4096]
              argument 1 + 0 -> buffer 0 + 0
            2 x grid [4, 1, 1] block [256, 1, 1] shared 0
              Signed 5
              Pointer of 8 bytes
              buffers [4096]
              argument 1 + 0 -> buffer 0 + 0
        "#]],
    );
}
