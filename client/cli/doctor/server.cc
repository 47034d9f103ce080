// The server and, behind it, the tracker: reached, how fast, agreeing.
#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/certs/identity.h"
#include "base/clock.h"
#include "client/cli/doctor/doctor.h"
#include "client/cli/doctor/judge.h"
#include "client/cli/server_address.h"
#include "client/cli/server_client.h"
#include "compiler/codegen/compiler_version.h"

namespace regatta::cli {
namespace {

constexpr int kCalls = 5;
// Progress of a job comes by such calls.
constexpr absl::Duration kSlow = absl::Milliseconds(200);

Finding ExamineSkew(const std::string& who, int64_t their_unix_ms,
                    absl::Time middle) {
  const int64_t skew = their_unix_ms - absl::ToUnixMillis(middle);
  const std::string what = absl::StrCat("the ", who, "'s wall clock is ",
                                        OffsetText(skew), " this machine's");
  if (!IsSkewed(skew)) {
    return {Level::kOk, who + " clock", what, ""};
  }
  return {Level::kWarn, who + " clock",
          what + ": certificates may not count, and dates in the log differ",
          "timedatectl set-ntp true, on both"};
}

Finding ExamineVersion(const std::string& who, const v1::PeerFacts& peer) {
  const std::string check = who + " version";
  if (peer.version().empty()) {
    return {Level::kWarn, check,
            absl::StrCat("the ", who,
                         " does not tell its version: it is of an "
                         "older release"),
            absl::StrCat("upgrade the ", who)};
  }
  if (peer.version() != REGATTA_VERSION) {
    return {Level::kWarn, check,
            absl::StrCat("the ", who, " is ", peer.version(), ", this program ",
                         REGATTA_VERSION),
            "upgrade the older one"};
  }
  return {Level::kOk, check, peer.version(), ""};
}

Finding ExamineCompiler(const v1::PeerFacts& server) {
  const std::string own = CompilerVersionOfKind("cpu");
  if (server.compiler_version() == own) {
    return {Level::kOk, "compiler", own + " here and at the server", ""};
  }
  return {Level::kWarn, "compiler",
          absl::StrCat("the server has ", server.compiler_version(),
                       ", this program ", own,
                       ": what is compiled here is not what was measured"),
          "install one build everywhere"};
}

Finding ExamineProtection(const ServerAddress& address) {
  if (address.tls != nullptr) {
    return {Level::kOk, "protection",
            absl::StrCat("TLS with both sides' certificates; this is ",
                         IdentityUri(address.tls->self())),
            ""};
  }
  return {Level::kWarn, "protection",
          "plain text: whoever reaches the ports may do everything (on one "
          "machine, whoever has an account there)",
          "docs/security.md; regatta up --tls"};
}

}  // namespace

std::vector<Finding> ExamineServer(const DoctorOptions& options) {
  auto address = ReachServer(options.server);
  if (!address.ok()) {
    const std::string message(address.status().message());
    // Files of an identity; the message says what to do about them.
    if (absl::StrContains(message, ".pem")) {
      return {{Level::kFail, "certificate", message,
               "as it says; then name the folder: --tls DIR"}};
    }
    return {{Level::kFail, "reachable", message,
             "regatta up, or name it: --server HOST:PORT"}};
  }
  ServerClient client(*address);
  std::vector<absl::Duration> took;
  v1::ListDevicesResponse fleet;
  absl::Time middle;
  for (int i = 0; i < kCalls; ++i) {
    const absl::Time began = RealClock().Wall();
    const SteadyTime asked = RealClock().Steady();
    auto response = client.ListDevices();
    if (!response.ok()) {
      return {JudgeSilence(std::string(response.status().message()))};
    }
    took.push_back(RealClock().Steady() - asked);
    middle = began + took.back() / 2;
    fleet = *std::move(response);
  }
  std::sort(took.begin(), took.end());
  const absl::Duration median = took[kCalls / 2];
  Finding reachable{
      median <= kSlow ? Level::kOk : Level::kWarn, "reachable",
      absl::StrFormat("%s (%s) and its tracker answer in %.1f ms, median of "
                      "%d calls",
                      address->address, address->source,
                      absl::ToDoubleMilliseconds(median), kCalls),
      ""};
  if (median > kSlow) reachable.remedy = "look at the way there: ping, load";
  std::vector<Finding> findings = {std::move(reachable),
                                   ExamineProtection(*address),
                                   ExamineVersion("server", fleet.server()),
                                   ExamineVersion("tracker", fleet.tracker())};
  if (fleet.has_server()) {
    findings.push_back(ExamineSkew("server", fleet.server().unix_ms(), middle));
    findings.push_back(ExamineCompiler(fleet.server()));
    findings.push_back(ExamineBoards(fleet));
  }
  if (fleet.has_tracker()) {
    findings.push_back(
        ExamineSkew("tracker", fleet.tracker().unix_ms(), middle));
  }
  return findings;
}

}  // namespace regatta::cli
