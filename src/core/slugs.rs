//! Closed enums whose values have a word in JSON, SQL, metrics and logs.

/// Declares a closed enum with the slug of each value: `ALL` in their order, `as_str`, `parse` and `Display`. Slugs never
/// change once released.
#[macro_export]
macro_rules! slugs {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident = $slug:literal,)+ }) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: [$name; [$($slug),+].len()] = [$($name::$variant),+];

            /// The slug under which it is stored and shown.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $slug),+
                }
            }

            /// The value of a slug; none when there is no such slug.
            pub fn parse(slug: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|value| value.as_str() == slug)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
