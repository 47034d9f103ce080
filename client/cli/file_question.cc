#include "client/cli/file_question.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/host_class.h"
#include "client/cli/server_client.h"
#include "compiler/compile.h"
#include "server/query/best_file.h"

namespace regatta::cli {
namespace {

BestFileOptions FileOptions() {
  BestFileOptions options;
  options.complete = CompleteTarget;
  options.compiler_version = [](const Target& target) {
    return absl::StatusOr<std::string>(CompilerVersion(target));
  };
  // One question, so it may wait for a build.
  options.gives_binary = BuildOnTheSpot(BoardBinaryHash);
  if (auto host = DescribeHost(); host.ok()) {
    options.host = {host->device_class, host->target.ToString(), host->cores};
  }
  return options;
}

}  // namespace

void AddSourceFlags(CLI::App* command, SourceFlags* flags) {
  command
      ->add_option("--log", flags->log,
                   "Ask this tuning log, which no server may hold, instead of "
                   "a server")
      ->check(NotEmpty());
  command
      ->add_option("--snapshot", flags->snapshot,
                   "Ask this file of `regatta log snapshot` instead of a "
                   "server")
      ->check(NotEmpty());
  AddServerFlag(command, &flags->server);
}

absl::StatusOr<BestAsker> OpenSource(const SourceFlags& flags) {
  const int named = !flags.log.empty() + !flags.snapshot.empty() +
                    !flags.server.server.empty();
  if (named > 1) {
    return absl::InvalidArgumentError(
        "--server, --log and --snapshot exclude one another: answers come from "
        "one place");
  }
  if (flags.log.empty() && flags.snapshot.empty()) {
    ASSIGN_OR_RETURN(std::shared_ptr<ServerClient> client,
                     ConnectServer(flags.server));
    return BestAsker([client](const v1::BestRequest& request) {
      return client->Best(request);
    });
  }
  auto opened = flags.log.empty()
                    ? BestFile::OpenSnapshot(flags.snapshot, FileOptions())
                    : BestFile::OpenLog(flags.log, FileOptions());
  // Not found is what a class is that the file does not have.
  if (absl::IsNotFound(opened.status()) ||
      absl::IsInvalidArgument(opened.status())) {
    return absl::FailedPreconditionError(opened.status().message());
  }
  ASSIGN_OR_RETURN(std::shared_ptr<BestFile> file, std::move(opened));
  return BestAsker([file](const v1::BestRequest& request) {
    return file->Answer(request, absl::ToUnixMillis(RealClock().Wall()));
  });
}

}  // namespace regatta::cli
