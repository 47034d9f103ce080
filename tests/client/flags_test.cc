#include <gtest/gtest.h>

#include <limits>

#include "client/cli/command.h"

namespace regatta::cli {
namespace {

// The error of `app` for one flag's text; "" when it is taken.
std::string Parse(CLI::App& app, const std::string& flag,
                  const std::string& text) {
  // CLI11 wants them last first.
  std::vector<std::string> arguments = {text, flag};
  try {
    app.parse(arguments);
    return "";
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
}

TEST(WholeNumber, IsDecimalAndInRange) {
  CLI::App app;
  int64_t value = 0;
  AddWholeNumber(&app, "--trials", &value, int64_t{1}, int64_t{1000}, "help");
  EXPECT_EQ(Parse(app, "--trials", "10"), "");
  EXPECT_EQ(value, 10);
  EXPECT_EQ(Parse(app, "--trials", "010"), "");
  EXPECT_EQ(value, 10) << "not octal";
  for (const char* bad : {"0", "-1", "1001", "ten", "1e3", "0x10", "4.5", "",
                          "99999999999999999999999"}) {
    const std::string error = Parse(app, "--trials", bad);
    EXPECT_NE(error.find("--trials"), std::string::npos)
        << bad << ": " << error;
    EXPECT_NE(error.find("1 to 1000"), std::string::npos) << error;
  }
  EXPECT_EQ(value, 10);
}

TEST(WholeNumber, ASeedNeitherWrapsNorSaturates) {
  CLI::App app;
  uint64_t seed = 0;
  AddWholeNumber(&app, "--seed", &seed, uint64_t{0},
                 std::numeric_limits<uint64_t>::max(), "help");
  EXPECT_EQ(Parse(app, "--seed", "18446744073709551615"), "");
  EXPECT_EQ(seed, 18446744073709551615u);
  EXPECT_NE(Parse(app, "--seed", "18446744073709551616"), "");
  EXPECT_NE(Parse(app, "--seed", "-1"), "");
}

TEST(Number, IsFinite) {
  CLI::App app;
  double minutes = 0;
  AddNumber(&app, "--minutes", &minutes, 0.01, 1e5, "help");
  EXPECT_EQ(Parse(app, "--minutes", "1.5"), "");
  EXPECT_DOUBLE_EQ(minutes, 1.5);
  for (const char* bad : {"nan", "inf", "0", "-3", "1e9", "x", ""}) {
    EXPECT_NE(Parse(app, "--minutes", bad).find("--minutes"), std::string::npos)
        << bad;
  }
}

TEST(Utf8Text, RefusesOtherBytes) {
  CLI::App app;
  std::string name;
  app.add_option("--name", name)->check(Utf8Text());
  EXPECT_EQ(Parse(app, "--name", "caf\u00e9"), "");
  EXPECT_NE(Parse(app, "--name", "\xff"), "");
  EXPECT_NE(Parse(app, "--name", "cut \xc3"), "");
}

TEST(Commands, EveryFlagExplainsItself) {
  for (const Command& command : Commands()) {
    CLI::App app;
    const auto added = command.add(app);
    EXPECT_FALSE(added.first->get_description().empty());
    for (const CLI::Option* option : added.first->get_options()) {
      EXPECT_FALSE(option->get_description().empty())
          << added.first->get_name() << " " << option->get_name();
    }
  }
}

}  // namespace
}  // namespace regatta::cli
