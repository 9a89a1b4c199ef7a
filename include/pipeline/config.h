#pragma once

// Configuration files: Pipeline::loadConfig and saveConfig (pipeline/compressor.h) and the shipped
// presets (fz/presets.h). docs/config.md describes the keys.
#include "fz/presets.h"
#include "pipeline/compressor.h"
