// Malformed requests: exit code 1 or 2, a message that says what and where,
// nothing on standard output, nothing changed.
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

struct Case {
  std::vector<std::string> arguments;
  std::string says;  // part of the message
};

const char kGood[] = "matmul(m=4,n=4,k=4)";

std::vector<Case> Cases() {
  return {
      {{"tune", "matmull(m=4,n=4,k=4)"}, "matmul"},
      {{"tune", "matmul(m=0,n=4,k=4)"}, "m"},
      {{"tune", "matmul(m=-3,n=4,k=4)"}, "-3"},
      {{"tune", "matmul(m=4,n=4)"}, "k"},
      {{"tune", "matmul(m=99999999999999999999,n=4,k=4)"}, "m"},
      {{"tune", "matmul(m=4000000000,n=4000000000,k=4000000000)"}, "4000000000"},
      {{"tune", "matmul(m=4.5,n=4,k=4)"}, "4.5"},
      {{"tune", "matmul(m=4,n=4,k=4,dtype=f99)"}, "f99"},
      {{"tune", "matmul(m=4,m=5,n=4,k=4)"}, "m"},
      {{"tune", ""}, "workload"},
      {{"tune", "("}, "1"},
      {{"tune", "C[i,j] = sum(k) A[i,k] * B[q,j] where i=4, j=4, k=4"}, "q"},
      {{"tune", "conv2d(n=1,h=2,w=2,ci=3,co=4,kh=5,kw=5,stride=1,pad=0)"}, "kh"},
      {{"tune", "softmax(rows=1,cols=0)"}, "cols"},
      {{"tune", kGood, "--trials", "0"}, "--trials"},
      {{"tune", kGood, "--trials", "-1"}, "--trials"},
      {{"tune", kGood, "--trials", "ten"}, "--trials"},
      {{"tune", kGood, "--minutes", "nan"}, "--minutes"},
      {{"tune", kGood, "--trials", "5", "--minutes", "1"}, "--minutes"},
      {{"tune", kGood, "--until-gain", "-1"}, "--until-gain"},
      {{"tune", kGood, "--weight", "0"}, "--weight"},
      {{"tune"}, "workload"},
      {{"tune", "--file", "/nonexistent/jobs.json"}, "/nonexistent"},
      {{"tune", "--file", "/etc/hostname", "--trials", "5"}, "--trials"},
      {{"tune", kGood, "--file", "/etc/hostname"}, "--file"},
      {{"resume", "99999999"}, "99999999"},
      {{"resume"}, "id"},
      {{"tune", kGood, "--strategy", "magic"}, "evolutionary"},
      {{"tune", kGood, "--threads", "0"}, "--threads"},
      {{"tune", kGood, "--threads", "1000"}, "1000"},
      {{"tune", kGood, "--cache", "tepid"}, "warm"},
      {{"tune", kGood, "--device-class", "no-such-board"}, "no-such-board"},
      {{"best", kGood, "--device-class", "no-such-board"}, "no-such-board"},
      {{"best"}, "workload"},
      {{"jobs", "99999999"}, "99999999"},
      {{"jobs", "x"}, "x"},
      {{"cancel", "0"}, "0"},
      {{"run", kGood, "--schedule", "nonsense{"}, "--schedule"},
      {{"compile", kGood, "-o", "/proc/none/x.so"}, "/proc/none"},
      {{"compile", kGood, "-o", "/tmp/regatta-x.txt"}, ".so"},
      {{"compile", kGood, "-o", "/tmp/regatta-x.so", "--log", "/nonexistent"},
       "/nonexistent"},
      {{"compile", kGood, "-o", "/tmp/regatta-x.so", "--target",
        "cpu,triple=x86_64-linux-gnu,mcpu=znver99"},
       "znver99"},
      {{"tune", kGood, "--server", "127.0.0.1:1"}, "127.0.0.1:1"},
      {{"tune", kGood, "--server", "nowhere"}, "nowhere"},
      {{"no-such-command"}, "no-such-command"},
      {{}, "subcommand"},
  };
}

TEST(BadInput, IsRefusedWithAMessageAndChangesNothing) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  for (const Case& c : Cases()) {
    const std::string line = absl::StrJoin(c.arguments, " ");
    const ProcessResult result = fleet.Run(c.arguments, absl::Seconds(20));
    EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 2)
        << line << " exits with " << result.exit_code;
    EXPECT_GT(result.err.size(), 20) << line;
    EXPECT_NE(result.err.find(c.says), std::string::npos)
        << line << " says: " << result.err;
    EXPECT_TRUE(result.out.empty()) << line << " prints: " << result.out;
  }
  EXPECT_TRUE(fleet.Document({"jobs"})["jobs"].empty());
  EXPECT_TRUE(fleet.Document({"records", kGood})["records"].empty());
  for (const char* daemon : {"server", "tracker", "agent"}) {
    EXPECT_GT(fleet.DaemonPid(daemon), 0) << daemon << " died";
  }
}

TEST(BadInput, AClassThatNoBoardEverHadIsAnsweredWithThoseThatExist) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const std::string device_class =
      fleet.Document({"devices"})["devices"][0]["device_class"];
  for (const char* command : {"tune", "best"}) {
    const ProcessResult result =
        fleet.Run({command, kGood, "--device-class", "no-such-board"});
    EXPECT_NE(result.err.find(device_class), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace regatta::testing
