/** Stores that one process owns: the guard stands in that process, and others reach it over HTTP. */
import { describeStaleHolder, startStore } from './frame.js';

describeStaleHolder('LevelDB', startStore('LevelDB'));
describeStaleHolder('in-process', startStore('in-process'));
