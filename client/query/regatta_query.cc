#include "client/query/regatta_query.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/target/target.h"
#include "server/query/best_file.h"

struct regatta_query {
  std::unique_ptr<regatta::BestFile> file;
};

struct regatta_query_answers {
  explicit regatta_query_answers(size_t count)
      : answers(count), texts(count), messages(count) {}

  std::vector<regatta_query_answer> answers;
  // What the texts of answer i point into: texts[i], or messages[i] when it is
  // an error.
  std::vector<regatta::v1::BestAnswer> texts;
  std::vector<std::string> messages;
};

namespace regatta {
namespace {

regatta_query_code CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return REGATTA_QUERY_OK;
    case absl::StatusCode::kInvalidArgument:
      return REGATTA_QUERY_INVALID;
    case absl::StatusCode::kNotFound:
      return REGATTA_QUERY_NOT_FOUND;
    case absl::StatusCode::kFailedPrecondition:
      return REGATTA_QUERY_REFUSED;
    case absl::StatusCode::kDataLoss:
      return REGATTA_QUERY_DAMAGED;
    case absl::StatusCode::kPermissionDenied:
      return REGATTA_QUERY_NO_ACCESS;
    case absl::StatusCode::kResourceExhausted:
      return REGATTA_QUERY_NO_MEMORY;
    default:
      return REGATTA_QUERY_FAILED;
  }
}

void Fill(regatta_query_error* error, const absl::Status& status) {
  if (error == nullptr) return;
  error->code = CodeOf(status);
  const size_t bytes =
      std::min(status.message().size(), sizeof(error->message) - 1);
  std::memcpy(error->message, status.message().data(), bytes);
  error->message[bytes] = '\0';
}

// Runs `body`, which returns a StatusOr of a pointer. Libraries below may throw
// (memory, mostly); none of it may cross.
template <typename Body>
auto Guarded(regatta_query_error* error, const Body& body)
    -> std::decay_t<decltype(body().value())> {
  absl::Status status;
  try {
    auto result = body();
    if (result.ok()) {
      Fill(error, absl::OkStatus());
      return *result;
    }
    status = result.status();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& thrown) {
    status = absl::InternalError(thrown.what());
  } catch (...) {
    status = absl::InternalError("unknown exception");
  }
  Fill(error, status);
  return nullptr;
}

// A second of opening, at most, for a lab's whole log.
constexpr size_t kReadWholeRows = 10000;

// Without LLVM a target cannot be completed, only be seen to be complete.
absl::StatusOr<Target> AcceptComplete(const Target& target) {
  for (const auto& [missing, field] :
       {std::pair(target.triple.empty(), "triple"),
        std::pair(target.mcpu.empty(), "mcpu"),
        std::pair(target.vector_bits == 0, "vector_bits"),
        std::pair(target.vector_registers == 0, "vector_registers")}) {
    if (missing) {
      return absl::InvalidArgumentError(absl::StrCat(
          field,
          " is missing; give the whole text, as `regatta devices` and "
          "`regatta best --json` print it"));
    }
  }
  return target;
}

absl::StatusOr<std::string> VersionFor(const Target& target) {
  std::string version = CompilerVersionOfKind(target.kind, target.driver);
  if (version.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no code generator for kind '", target.kind, "'"));
  }
  return version;
}

absl::StatusOr<v1::BestRequest> ToRequest(
    const regatta_query_question& question) {
  if (question.size < sizeof(regatta_query_question)) {
    return absl::InvalidArgumentError(
        absl::StrCat("size is ", question.size,
                     "; set it to "
                     "sizeof(regatta_query_question), ",
                     sizeof(regatta_query_question)));
  }
  if (question.workload == nullptr) {
    return absl::InvalidArgumentError("workload is null");
  }
  if (question.cache != REGATTA_QUERY_WARM &&
      question.cache != REGATTA_QUERY_COLD) {
    return absl::InvalidArgumentError(
        absl::StrCat("cache is ", static_cast<int>(question.cache),
                     "; it must be REGATTA_QUERY_WARM or _COLD"));
  }
  v1::BestRequest request;
  request.set_workload(question.workload);
  if (question.device_class != nullptr) {
    request.set_device_class(question.device_class);
  }
  if (question.target != nullptr) request.set_target(question.target);
  request.mutable_policy()->set_threads(question.threads);
  request.mutable_policy()->set_cache(question.cache == REGATTA_QUERY_COLD
                                          ? v1::CACHE_STATE_COLD
                                          : v1::CACHE_STATE_WARM);
  return request;
}

regatta_query_grade GradeOf(const std::string& name) {
  if (name == "exact") return REGATTA_QUERY_EXACT;
  if (name == "compatible") return REGATTA_QUERY_COMPATIBLE;
  if (name == "neighbour_shape") return REGATTA_QUERY_NEIGHBOUR_SHAPE;
  if (name == "neighbour_device") return REGATTA_QUERY_NEIGHBOUR_DEVICE;
  return REGATTA_QUERY_DEFAULT;
}

// Points into `from`.
regatta_query_answer View(const v1::BestAnswer& from) {
  regatta_query_answer to = {};
  to.code = REGATTA_QUERY_OK;
  to.message = "";
  to.grade = GradeOf(from.grade());
  to.grade_name = from.grade().c_str();
  to.reason = from.reason().c_str();
  to.differing_field = from.differing_field().c_str();
  to.schedule = from.schedule().text().c_str();
  to.space = from.schedule().space().c_str();
  to.space_version = from.schedule().space_version();
  to.workload = from.workload().c_str();
  to.workload_key = from.workload_key().c_str();
  to.device_class = from.device_class().c_str();
  to.target = from.target().c_str();
  to.threads = from.policy().threads();
  to.cache = from.policy().cache() == v1::CACHE_STATE_COLD ? REGATTA_QUERY_COLD
                                                           : REGATTA_QUERY_WARM;
  to.time_ns = from.time_ns();
  to.low_ns = from.low_ns();
  to.high_ns = from.high_ns();
  to.samples = from.samples();
  to.boards = from.boards();
  to.default_ns = from.default_ns();
  to.compiler_version = from.compiler_version().c_str();
  to.binary_hash = from.binary_hash().c_str();
  to.measured_unix_ms = from.measured_unix_ms();
  return to;
}

regatta_query_answer ErrorView(regatta_query_code code, const char* message) {
  regatta_query_answer to = View(v1::BestAnswer::default_instance());
  to.code = code;
  to.message = message;
  to.grade = static_cast<regatta_query_grade>(0);
  to.threads = 0;
  return to;
}

void AnswerOne(BestFile& file, const regatta_query_question& question,
               size_t place, regatta_query_answers& answers) {
  auto request = ToRequest(question);
  absl::StatusOr<v1::BestAnswer> answer =
      request.ok() ? file.Answer(*request, 0)
                   : absl::StatusOr<v1::BestAnswer>(request.status());
  if (answer.ok()) {
    answers.texts[place] = *std::move(answer);
    answers.answers[place] = View(answers.texts[place]);
  } else {
    answers.messages[place] = std::string(answer.status().message());
    answers.answers[place] =
        ErrorView(CodeOf(answer.status()), answers.messages[place].c_str());
  }
}

// Smaller batches are not worth a thread's start.
constexpr size_t kSharedBatch = 256;
constexpr size_t kMaxThreads = 4;
constexpr size_t kQuestionsAtOnce = 32;

// Answers questions until none is left; several threads may be at it. What is
// thrown ends the work of all.
class Batch {
 public:
  Batch(BestFile& file, const regatta_query_question* questions, size_t count,
        regatta_query_answers& answers)
      : file_(file), questions_(questions), count_(count), answers_(answers) {}

  void Run() {
    const size_t threads =
        count_ < kSharedBatch
            ? 1
            : std::clamp<size_t>(std::thread::hardware_concurrency(), 1,
                                 kMaxThreads);
    std::vector<std::thread> others;
    StartOthers(threads - 1, others);
    Work();
    for (std::thread& thread : others) thread.join();
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  // As many as there is room for: the batch is answered without them, too. They
  // take no signals, which are for the program's own threads.
  void StartOthers(size_t count, std::vector<std::thread>& others) {
    if (count == 0) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      others.reserve(count);
      while (others.size() < count) others.emplace_back([this] { Work(); });
    } catch (...) {  // no memory or no thread for another
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void Work() {
    try {
      for (;;) {
        const size_t first = next_.fetch_add(kQuestionsAtOnce);
        if (first >= count_) return;
        const size_t end = std::min(first + kQuestionsAtOnce, count_);
        for (size_t i = first; i < end; ++i) {
          AnswerOne(file_, questions_[i], i, answers_);
        }
      }
    } catch (...) {
      next_ = count_;
      std::lock_guard lock(mutex_);
      thrown_ = std::current_exception();
    }
  }

  BestFile& file_;
  const regatta_query_question* const questions_;
  const size_t count_;
  regatta_query_answers& answers_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace
}  // namespace regatta

using regatta::Fill;
using regatta::Guarded;

regatta_query* regatta_query_open(const char* path,
                                  regatta_query_error* error) {
  return Guarded(error, [&]() -> absl::StatusOr<regatta_query*> {
    if (path == nullptr) return absl::InvalidArgumentError("path is null");
    regatta::BestFileOptions options;
    options.complete = regatta::AcceptComplete;
    options.compiler_version = regatta::VersionFor;
    options.read_whole_rows = regatta::kReadWholeRows;
    auto file = regatta::BestFile::Open(path, std::move(options));
    if (!file.ok()) return file.status();
    return new regatta_query{*std::move(file)};
  });
}

void regatta_query_close(regatta_query* query) { delete query; }

regatta_query_answers* regatta_query_ask(
    regatta_query* query, const regatta_query_question* questions, size_t count,
    regatta_query_error* error) {
  return Guarded(error, [&]() -> absl::StatusOr<regatta_query_answers*> {
    if (query == nullptr) return absl::InvalidArgumentError("query is null");
    if (questions == nullptr && count > 0) {
      return absl::InvalidArgumentError("questions is null");
    }
    if (count > PTRDIFF_MAX / sizeof(regatta_query_question)) {
      return absl::InvalidArgumentError(
          absl::StrCat("count is ", count, "; no array has as many questions"));
    }
    auto answers = std::make_unique<regatta_query_answers>(count);
    regatta::Batch(*query->file, questions, count, *answers).Run();
    return answers.release();
  });
}

size_t regatta_query_count(const regatta_query_answers* answers) {
  return answers == nullptr ? 0 : answers->answers.size();
}

const regatta_query_answer* regatta_query_get(
    const regatta_query_answers* answers, size_t index) {
  if (answers == nullptr || index >= answers->answers.size()) return nullptr;
  return &answers->answers[index];
}

void regatta_query_free(regatta_query_answers* answers) { delete answers; }

const char* regatta_query_compiler_version(void) {
  static const std::string& version =
      *new std::string(regatta::CompilerVersionOfKind("cpu"));
  return version.c_str();
}
