//! Colours: one table for both themes. A ledger has the same colour in every picture, and no two
//! inks of a theme are the same, so that a page can name a colour by its ink.
//!
//! Ledgers take the palette of Okabe and Ito, which colour-blind people can tell apart.

use crate::live::Ledger;

/// On what ground a picture is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Theme {
    /// Dark on white.
    #[default]
    Light,
    /// Light on black.
    Dark,
}

macro_rules! inks {
    ($($variant:ident $name:literal $light:literal $dark:literal;)*) => {
        /// What something is drawn in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Ink { $(#[doc = concat!("`", $name, "`.")] $variant,)* }

        impl Ink {
            /// Every ink.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in style sheets.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its colour, as red, green and blue in one number.
            #[must_use]
            pub const fn colour(self, theme: Theme) -> u32 {
                match (self, theme) {
                    $((Self::$variant, Theme::Light) => $light,
                    (Self::$variant, Theme::Dark) => $dark,)*
                }
            }
        }
    };
}

inks! {
    Ground "ground" 0xFF_FF_FF 0x14_18_1F;
    Text "text" 0x1F_2A_38 0xE3_E9_F0;
    Quiet "quiet" 0x56_64_75 0x9A_A8_B8;
    Grid "grid" 0xE4_E8_ED 0x2A_32_3D;
    Axis "axis" 0x8A_97_A6 0x5C_69_79;
    Alarm "alarm" 0xB0_1E_2E 0xFF_8A_8A;
    Device "device" 0x00_72_B2 0x3E_97_D4;
    Managed "managed" 0xB8_5C_94 0xD9_8A_B9;
    Pinned "pinned" 0xD5_5E_00 0xE8_78_1E;
    Registered "registered" 0x3A_9B_DC 0x7C_C8_F2;
    AsyncPool "async-pool" 0xE6_9F_00 0xF2_B6_2E;
    VmmAddress "vmm-address" 0x8C_8C_8C 0xA6_A6_A6;
    VmmPhysical "vmm-physical" 0x00_9E_73 0x2C_B8_8E;
    VmmHost "vmm-host" 0x9A_8A_00 0xE3_D5_3C;
    Graph "graph" 0x9E_3A_86 0xE0_8F_E6;
    VmmMapped "vmm-mapped" 0x5B_4B_B5 0x9C_8F_F0;
    Array "array" 0x7A_4B_20 0xC0_8A_5A;
    Imported "imported" 0x2F_6F_73 0x6F_C2_C4;
    Torch "torch" 0xC7_3A_5E 0xF0_80_9A;
    Process "process" 0x11_18_22 0xF5_F8_FB;
    Used "used" 0x6E_7B_8A 0x8E_9A_A8;
    Waste "waste" 0xC4_4E_4E 0xE0_6C_6C;
    Other "other" 0x7A_87_95 0x7F_8C_9A;
}

impl Ink {
    /// The colour of a ledger.
    #[must_use]
    pub const fn of(ledger: Ledger) -> Self {
        match ledger {
            Ledger::Device => Self::Device,
            Ledger::Managed => Self::Managed,
            Ledger::Pinned => Self::Pinned,
            Ledger::Registered => Self::Registered,
            Ledger::AsyncPool => Self::AsyncPool,
            Ledger::VmmAddress => Self::VmmAddress,
            Ledger::VmmPhysical => Self::VmmPhysical,
            Ledger::VmmHost => Self::VmmHost,
            Ledger::Graph => Self::Graph,
            Ledger::VmmMapped => Self::VmmMapped,
            Ledger::Array => Self::Array,
            Ledger::Imported => Self::Imported,
            Ledger::Torch => Self::Torch,
        }
    }

    /// Red, green and blue.
    #[must_use]
    pub const fn rgb(self, theme: Theme) -> (u8, u8, u8) {
        let [_, red, green, blue] = self.colour(theme).to_be_bytes();
        (red, green, blue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_inks_of_a_theme_are_the_same() {
        for theme in [Theme::Light, Theme::Dark] {
            let mut all: Vec<u32> = Ink::ALL.iter().map(|ink| ink.colour(theme)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), Ink::ALL.len(), "{theme:?}");
        }
    }

    fn luminance(ink: Ink, theme: Theme) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let (red, green, blue) = ink.rgb(theme);
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    fn contrast(one: Ink, other: Ink, theme: Theme) -> f64 {
        let [one, other] = [one, other].map(|ink| luminance(ink, theme) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn words_stand_out_from_the_ground() {
        for theme in [Theme::Light, Theme::Dark] {
            for ink in [Ink::Text, Ink::Quiet, Ink::Alarm] {
                assert!(contrast(ink, Ink::Ground, theme) >= 4.5, "{ink:?} {theme:?}");
            }
            for &ledger in Ledger::ALL {
                let ink = Ink::of(ledger);
                assert!(contrast(ink, Ink::Ground, theme) >= 2.2, "{ink:?} {theme:?}");
            }
        }
    }
}
