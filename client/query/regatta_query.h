/* Best-known schedules from a file, without a server: the C interface of
 * libregatta_query.
 *
 * The file is a snapshot (`regatta log snapshot -o FILE`) or a tuning log that
 * no server holds; an open log keeps servers away until it is closed, and one
 * of up to 10,000 best-known rows is read whole when it is opened, about 0.1 ms
 * a row.
 *
 * Answers depend on the file and the release of this library alone: the same
 * question gets the same answer every time, and the one that a server on this
 * log would give.
 *
 * Errors. Nothing is thrown and nothing ends the process. A function that can
 * fail takes a regatta_query_error, which may be null, and fills it in.
 *
 * Ownership. A handle belongs to the caller until regatta_query_close, answers
 * until regatta_query_free; answers stay valid after their handle was closed.
 * Every text in an answer belongs to the answers. Texts that are given are
 * copied before a function returns. Texts are UTF-8 and end with a zero byte.
 *
 * Threads. A handle may be used from any thread, from several at once; closing
 * it must be the last use. Answers may be read from any thread. A batch of 256
 * questions or more is shared with up to three threads of the library's own,
 * which take no signals and have ended when the call returns.
 *
 * Structures only grow at their end, and the library alone makes answers and
 * reads the size of questions from the question's own `size`: programs built
 * with an older header keep working. */
#ifndef REGATTA_QUERY_H_
#define REGATTA_QUERY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(REGATTA_QUERY_BUILD)
#define REGATTA_QUERY_API __attribute__((visibility("default")))
#else
#define REGATTA_QUERY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct regatta_query regatta_query;
typedef struct regatta_query_answers regatta_query_answers;

typedef enum regatta_query_code {
  REGATTA_QUERY_OK = 0,
  /* The question makes no sense; the message names the field and the place. */
  REGATTA_QUERY_INVALID = 1,
  /* No such file, or no such device class in it; lists those that there are. */
  REGATTA_QUERY_NOT_FOUND = 2,
  /* A server holds the log; the message has its address. Or the file is of
   * another version, or a class has fewer cores than the question's threads. */
  REGATTA_QUERY_REFUSED = 3,
  /* The file is cut off or damaged. */
  REGATTA_QUERY_DAMAGED = 4,
  /* The system does not let the file be read. */
  REGATTA_QUERY_NO_ACCESS = 5,
  REGATTA_QUERY_NO_MEMORY = 6,
  /* Anything else. */
  REGATTA_QUERY_FAILED = 7
} regatta_query_code;

typedef struct regatta_query_error {
  regatta_query_code code;
  char message[1024]; /* "" when all is well; cut off when longer */
} regatta_query_error;

/* How far the evidence behind an answer holds. */
typedef enum regatta_query_grade {
  REGATTA_QUERY_EXACT = 1,      /* measured for this very question */
  REGATTA_QUERY_COMPATIBLE = 2, /* measured, but for another compiler, target
                                 * or protocol, or a class of this target */
  REGATTA_QUERY_NEIGHBOUR_SHAPE = 3,  /* carried over from another shape */
  REGATTA_QUERY_NEIGHBOUR_DEVICE = 4, /* from another class or policy */
  REGATTA_QUERY_DEFAULT = 5           /* nothing to go by */
} regatta_query_grade;

typedef enum regatta_query_cache {
  REGATTA_QUERY_WARM = 0, /* operands as the previous call left them */
  REGATTA_QUERY_COLD = 1  /* evicted before every timed call */
} regatta_query_cache;

/* Zero every member that is not set. */
typedef struct regatta_query_question {
  size_t size;              /* sizeof(regatta_query_question) */
  const char *workload;     /* "matmul(m=512,n=512,k=512)" */
  const char *device_class; /* one of these two, the other null: a class of */
  const char *target;       /* the file, or a target's whole text with
                             * vector_bits and vector_registers */
  int threads;              /* 0: 1 */
  regatta_query_cache cache;
} regatta_query_question;

/* One answer; texts are "" and numbers 0 where not known. */
typedef struct regatta_query_answer {
  /* When not REGATTA_QUERY_OK, `message` says why and all else is empty. */
  regatta_query_code code;
  const char *message;
  regatta_query_grade grade;
  const char *grade_name;      /* "exact" "compatible" "neighbour_shape"
                                * "neighbour_device" "default" */
  const char *reason;          /* why this grade, for people */
  const char *differing_field; /* what keeps it from being exact */
  const char *schedule;        /* always a schedule of this workload */
  const char *space;
  int32_t space_version;
  const char *workload; /* in its normal form */
  const char *workload_key;
  const char *device_class;
  const char *target; /* what the schedule is for */
  int threads;
  regatta_query_cache cache;
  int64_t time_ns; /* of one call; 0: not measured here */
  int64_t low_ns;  /* 95 % interval of time_ns */
  int64_t high_ns;
  int64_t samples;              /* timed blocks behind it */
  int64_t boards;               /* devices behind it */
  int64_t default_ns;           /* of the default schedule */
  const char *compiler_version; /* that it was measured with */
  const char *binary_hash;      /* SHA-256 of the code that was measured */
  int64_t measured_unix_ms;     /* when, by the log's clock */
} regatta_query_answer;

/* Opens the file; null on an error. */
REGATTA_QUERY_API regatta_query *regatta_query_open(const char *path,
                                                    regatta_query_error *error);

/* Null does nothing. */
REGATTA_QUERY_API void regatta_query_close(regatta_query *query);

/* Answers `count` questions, in their order. What is wrong with one question
 * stands in its answer; null only when nothing could be answered at all. */
REGATTA_QUERY_API regatta_query_answers *regatta_query_ask(
    regatta_query *query, const regatta_query_question *questions, size_t count,
    regatta_query_error *error);

REGATTA_QUERY_API size_t
regatta_query_count(const regatta_query_answers *answers);

/* The answer to question `index`; null when there is none. */
REGATTA_QUERY_API const regatta_query_answer *regatta_query_get(
    const regatta_query_answers *answers, size_t index);

/* Null does nothing. */
REGATTA_QUERY_API void regatta_query_free(regatta_query_answers *answers);

/* The compiler whose records are exact for this library. Never null. */
REGATTA_QUERY_API const char *regatta_query_compiler_version(void);

#ifdef __cplusplus
}
#endif

#endif /* REGATTA_QUERY_H_ */
