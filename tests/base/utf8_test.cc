// Expected values after the tables of RFC 3629 and of the Unicode standard.
#include "base/utf8.h"

#include <string>

#include "base/one_line.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

constexpr char kAccent[] = "\xc3\xa9";        // U+00E9
constexpr char kEuro[] = "\xe2\x82\xac";      // U+20AC
constexpr char kSail[] = "\xf0\x9f\x9b\xa5";  // U+1F6E5

TEST(Utf8, TextStaysAsItIs) {
  for (const std::string text :
       {std::string(), std::string("a\0b\x7f", 4), std::string(kAccent),
        std::string(kEuro), std::string(kSail),
        // The first and the last character of each length, and those beside the
        // surrogates.
        std::string("\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xed\x9f\xbf"),
        std::string("\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")}) {
    EXPECT_EQ(Utf8(text), text);
    EXPECT_TRUE(IsUtf8(text));
  }
}

TEST(Utf8, EachByteOfNoCharacterIsReplaced) {
  const struct {
    std::string text, clean;
  } cases[] = {
      {"a\xff\xfe"
       "b",
       "a??b"},
      {"\x80", "?"},  // continues nothing
      {"\xc3\xa9\xa9", "\xc3\xa9?"},
      {"\xc0\xaf", "??"},  // overlong
      {"\xc1\xbf", "??"},
      {"\xe0\x9f\xbf", "???"},
      {"\xf0\x8f\xbf\xbf", "????"},
      {"\xed\xa0\x80", "???"},  // surrogates
      {"\xed\xbf\xbf", "???"},
      {"\xf4\x90\x80\x80", "????"},  // beyond U+10FFFF
      {"\xf5\x80\x80\x80", "????"},
      {"\xc3", "?"},  // cut off
      {"\xe2\x82", "??"},
      {"\xf0\x9f\x9b", "???"},
      {"\xe2\x82z", "??z"},
      {"\xe2\xc3\xa9", "?\xc3\xa9"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(Utf8(one.text), one.clean);
    EXPECT_FALSE(IsUtf8(one.text));
    EXPECT_FALSE(IsUtf8("more than eight bytes " + one.text));
  }
}

TEST(Utf8, ACutLeavesNoPartOfACharacter) {
  for (const std::string character : {kAccent, kEuro, kSail}) {
    const std::string text = "ab" + character + "yz";
    const size_t size = character.size();
    for (size_t part = 1; part < size; ++part) {
      EXPECT_EQ(Utf8Beginning(text, 2 + part), "ab");
      EXPECT_EQ(Utf8End(text, 2 + part), "yz");
    }
    EXPECT_EQ(Utf8Beginning(text, 2), "ab");
    EXPECT_EQ(Utf8Beginning(text, 2 + size), "ab" + character);
    EXPECT_EQ(Utf8End(text, 2), "yz");
    EXPECT_EQ(Utf8End(text, 2 + size), character + "yz");
    EXPECT_EQ(Utf8Beginning(text, 0), "");
    EXPECT_EQ(Utf8End(text, 0), "");
    EXPECT_EQ(Utf8Beginning(text, 99), text);
    EXPECT_EQ(Utf8End(text, 99), text);
  }
  // What was no character before the cut stays and is replaced.
  EXPECT_EQ(Utf8Beginning("a\xc3zz", 2), "a?");
  EXPECT_EQ(Utf8End("zz\xa9"
                    "a",
                    2),
            "?a");
}

TEST(OneLine, IsUtf8WhateverTheTextIs) {
  EXPECT_EQ(OneLine("a\xff\xc3\xa9\xed\xa0\x80\n"),
            "a\\xff\xc3\xa9\\xed\\xa0\\x80\\n");
  EXPECT_EQ(OneLine("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(OneLine("\xe2\x80\xae"), "\\u202e");
}

}  // namespace
}  // namespace regatta
